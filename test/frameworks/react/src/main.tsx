import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import Help from "./help";
import { Inline } from "./inline";

const root = document.querySelector("#root") ?? document.body;
createRoot(root).render(<StrictMode>{location.search === "?inline" ? <Inline /> : <Help />}</StrictMode>);
