/** The grammars of the highlighter. `jsdoc`, `regex` and `todo` stand inside of others. */

export { default as bash } from "@speed-highlight/core/languages/bash.js";
export { default as c } from "@speed-highlight/core/languages/c.js";
export { default as css } from "@speed-highlight/core/languages/css.js";
export { default as diff } from "@speed-highlight/core/languages/diff.js";
export { default as docker } from "@speed-highlight/core/languages/docker.js";
export { default as go } from "@speed-highlight/core/languages/go.js";
export { default as html } from "@speed-highlight/core/languages/html.js";
export { default as ini } from "@speed-highlight/core/languages/ini.js";
export { default as java } from "@speed-highlight/core/languages/java.js";
export { default as js } from "@speed-highlight/core/languages/js.js";
export { default as jsdoc } from "@speed-highlight/core/languages/jsdoc.js";
export { default as json } from "@speed-highlight/core/languages/json.js";
export { default as lua } from "@speed-highlight/core/languages/lua.js";
export { default as py } from "@speed-highlight/core/languages/py.js";
export { default as regex } from "@speed-highlight/core/languages/regex.js";
export { default as rs } from "@speed-highlight/core/languages/rs.js";
export { default as sql } from "@speed-highlight/core/languages/sql.js";
export { default as todo } from "@speed-highlight/core/languages/todo.js";
export { default as toml } from "@speed-highlight/core/languages/toml.js";
export { default as ts } from "@speed-highlight/core/languages/ts.js";
export { default as xml } from "@speed-highlight/core/languages/xml.js";
export { default as yaml } from "@speed-highlight/core/languages/yaml.js";
