// Resolve modules with the TypeScript compiler: `node resolve.js LIB ROOT < [[file, specifier] …]`, resolved ones on stdout.
"use strict";
const fs = require("fs");
const path = require("path");
const ts = require(process.argv[2]);
const root = process.argv[3];
const known = new Map();

function optionsOf(directory) {
  for (let at = directory; at.startsWith(root); at = path.dirname(at)) {
    for (const name of ["tsconfig.json", "jsconfig.json"]) {
      const file = path.join(at, name);
      if (fs.existsSync(file)) {
        const read = ts.readConfigFile(file, ts.sys.readFile);
        return ts.parseJsonConfigFileContent(read.config || {}, ts.sys, at, {}, file).options;
      }
    }
  }
  return {};
}

const found = [];
for (const [source, specifier] of JSON.parse(fs.readFileSync(0, "utf8"))) {
  const file = path.join(root, source);
  const directory = path.dirname(file);
  if (!known.has(directory)) {
    const options = { ...optionsOf(directory), allowJs: true, resolveJsonModule: true };
    options.moduleResolution = ts.ModuleResolutionKind.Bundler;
    options.module = ts.ModuleKind.ESNext;
    known.set(directory, options);
  }
  const resolved = ts.resolveModuleName(specifier, file, known.get(directory), ts.sys).resolvedModule;
  if (resolved) found.push([source, specifier, path.resolve(resolved.resolvedFileName)]);
}
console.log(JSON.stringify(found));
