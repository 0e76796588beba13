// Messages of eslint by rule: `node eslint.mjs MODULES < paths`, one JSON line for each file.
import { createRequire } from "node:module";
import fs from "node:fs";
import path from "node:path";

const require = createRequire(path.join(process.argv[2], "index.js"));
const { Linter } = require("eslint");
const parser = require("@typescript-eslint/parser");
const sonarjs = require("eslint-plugin-sonarjs");
const typescript = require("@typescript-eslint/eslint-plugin");
const config = {
  files: ["**/*.{js,jsx,mjs,cjs,ts,tsx,mts,cts}"],
  linterOptions: { noInlineConfig: true, reportUnusedDisableDirectives: "off" },
  languageOptions: { parser, sourceType: "module", parserOptions: { ecmaFeatures: { jsx: true } } },
  plugins: { sonarjs, typescript },
  rules: {
    complexity: ["error", 0],
    "sonarjs/cognitive-complexity": ["error", 0],
    "typescript/no-unused-vars": ["error", { args: "none", caughtErrors: "none", vars: "local" }],
    "typescript/no-shadow": ["error", { builtinGlobals: false, hoist: "functions" }],
  },
};
const root = process.argv[3];
const linter = new Linter({ configType: "flat", cwd: root });
for (const name of fs.readFileSync(0, "utf8").split("\n").filter(Boolean)) {
  const text = fs.readFileSync(path.join(root, name), "utf8").replace(/^\uFEFF/, "");
  const messages = linter.verify(text, [config], { filename: path.join(root, name) });
  const kept = messages.map((m) => [m.fatal ? "fatal" : m.ruleId, m.line, m.column, m.message]);
  console.log(JSON.stringify({ path: name, messages: kept }));
}
