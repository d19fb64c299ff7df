import bash from "@speed-highlight/core/languages/bash.js";
import c from "@speed-highlight/core/languages/c.js";
import css from "@speed-highlight/core/languages/css.js";
import diff from "@speed-highlight/core/languages/diff.js";
import docker from "@speed-highlight/core/languages/docker.js";
import go from "@speed-highlight/core/languages/go.js";
import html from "@speed-highlight/core/languages/html.js";
import ini from "@speed-highlight/core/languages/ini.js";
import java from "@speed-highlight/core/languages/java.js";
import js from "@speed-highlight/core/languages/js.js";
import jsdoc from "@speed-highlight/core/languages/jsdoc.js";
import json from "@speed-highlight/core/languages/json.js";
import lua from "@speed-highlight/core/languages/lua.js";
import py from "@speed-highlight/core/languages/py.js";
import regex from "@speed-highlight/core/languages/regex.js";
import rs from "@speed-highlight/core/languages/rs.js";
import sql from "@speed-highlight/core/languages/sql.js";
import todo from "@speed-highlight/core/languages/todo.js";
import toml from "@speed-highlight/core/languages/toml.js";
import ts from "@speed-highlight/core/languages/ts.js";
import xml from "@speed-highlight/core/languages/xml.js";
import yaml from "@speed-highlight/core/languages/yaml.js";
import type { ShjLanguageData } from "@speed-highlight/core/tokenize";

// Without a type, because the package's own do not fit each other under exact optional properties.
const known: Record<string, unknown> = {
  bash,
  c,
  css,
  diff,
  docker,
  go,
  html,
  ini,
  java,
  js,
  jsdoc,
  json,
  lua,
  py,
  regex,
  rs,
  sql,
  todo,
  toml,
  ts,
  xml,
  yaml,
};

/** Grammars by name; `jsdoc`, `regex` and `todo` stand inside of others. */
export const grammars = known as Record<string, ShjLanguageData>;
