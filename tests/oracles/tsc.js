// Results of the TypeScript compiler's parser and checker: `node tsc.js LIB < paths`, one JSON line for each file.
// Definitions follow workers/TASKS.md "Symbols and edges": no parameters, no locals of functions. Unused names are from the checker.
"use strict";
const fs = require("fs");
const ts = require(process.argv[2]);
const paths = fs.readFileSync(0, "utf8").split("\n").filter(Boolean);
const wantsUnused = process.argv[3] === "unused";
const K = ts.SyntaxKind;
const UNUSED = new Set([6133, 6138, 6192, 6196, 6198, 6199]);

function definitions(source) {
  const found = [];
  const line = (node) => source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1;
  const isFunction = (node) => node && (ts.isArrowFunction(node) || ts.isFunctionExpression(node));

  function add(kind, at, name, scope) {
    const qualified = scope.name ? `${scope.name}.${name}` : name;
    found.push([kind, line(at), qualified]);
    return qualified;
  }
  function nameOf(node) {
    if (!node || ts.isComputedPropertyName(node)) return null;
    if (ts.isModuleDeclaration(node.parent) && ts.isStringLiteral(node)) return node.text;
    return ts.isStringLiteral(node) || ts.isNumericLiteral(node) ? node.text : node.getText(source);
  }
  function bindings(name, kind, scope) {
    if (ts.isIdentifier(name)) return void add(kind, name, name.text, scope);
    for (const element of name.elements) if (element.name) bindings(element.name, kind, scope);
  }
  function open(kind, node, scope, name = nameOf(node.name), at = node.name || node) {
    if (name === null) return { name: scope.name, local: kind === "function" || kind === "method" || scope.local };
    const isInner = kind === "function" || kind === "method" || kind === "constructor";
    return { name: add(kind, at, name, scope), local: isInner, isClass: !isInner };
  }
  function walk(node, scope) {
    let inner = scope;
    switch (node.kind) {
      case K.FunctionDeclaration:
        inner = open("function", node, scope, node.name ? node.name.text : "default", node.name || node);
        break;
      case K.ClassDeclaration:
        inner = open("class", node, scope, node.name ? node.name.text : "default", node.name || node);
        break;
      case K.InterfaceDeclaration:
        inner = open("interface", node, scope);
        for (const member of node.members) {
          if (ts.isPropertySignature(member) && nameOf(member.name) !== null)
            add("field", member.name, nameOf(member.name), inner);
          if (ts.isMethodSignature(member) && nameOf(member.name) !== null)
            add("method", member.name, nameOf(member.name), inner);
        }
        break;
      case K.EnumDeclaration:
        inner = open("enum", node, scope);
        for (const member of node.members) add("enum_member", member.name, nameOf(member.name), inner);
        break;
      case K.ModuleDeclaration: {
        let whole = node, text = nameOf(node.name);
        while (whole.body && ts.isModuleDeclaration(whole.body)) (whole = whole.body), (text += "." + whole.name.text);
        if (text !== "global") inner = open("namespace", node, scope, text, node.name);
        if (whole.body) ts.forEachChild(whole.body, (child) => walk(child, inner));
        return;
      }
      case K.TypeAliasDeclaration:
        add("type", node.name, node.name.text, scope);
        break;
      case K.MethodDeclaration:
      case K.GetAccessor:
      case K.SetAccessor:
        inner = open("method", node, scope);
        break;
      case K.Constructor:
        inner = open("constructor", node, scope, "constructor", node.getChildren(source).find((c) => c.kind === K.ConstructorKeyword));
        for (const parameter of node.parameters)
          if (parameter.modifiers?.some((m) => [K.PublicKeyword, K.PrivateKeyword, K.ProtectedKeyword, K.ReadonlyKeyword].includes(m.kind)))
            add("field", parameter.name, parameter.name.getText(source), scope);
        break;
      case K.PropertyDeclaration:
        if (nameOf(node.name) !== null) add("field", node.name, nameOf(node.name), scope);
        break;
      case K.ArrowFunction:
      case K.FunctionExpression:
        inner = { name: scope.name, local: true };
        break;
      case K.VariableDeclaration: {
        const isConst = (ts.getCombinedNodeFlags(node) & ts.NodeFlags.BlockScoped) === ts.NodeFlags.Const;
        const value = node.initializer;
        if (ts.isIdentifier(node.name) && (isFunction(value) || (value && ts.isClassExpression(value)))) {
          inner = open(isFunction(value) ? "function" : "class", node, scope);
          ts.forEachChild(value, (child) => walk(child, inner));
          return;
        }
        if (ts.isCatchClause(node.parent)) break;
        const isLoop = ts.isForInStatement(node.parent.parent) || ts.isForOfStatement(node.parent.parent);
        if (!scope.local && !isLoop) bindings(node.name, isConst ? "constant" : "variable", scope);
        break;
      }
      case K.BinaryExpression:
        if (node.operatorToken.kind === K.EqualsToken && isFunction(node.right)) {
          const left = node.left;
          const at = ts.isPropertyAccessExpression(left) ? left.name : ts.isIdentifier(left) ? left : null;
          if (at) {
            walk(left, scope);
            inner = open("function", node, scope, at.text, at);
            ts.forEachChild(node.right, (child) => walk(child, inner));
            return;
          }
        }
        break;
      case K.ExportAssignment: {
        const value = node.expression;
        if (node.isExportEquals) break;
        if ((isFunction(value) && !value.name) || (ts.isClassExpression(value) && !value.name)) {
          inner = open(isFunction(value) ? "function" : "class", node, scope, "default", value);
          ts.forEachChild(value, (child) => walk(child, inner));
          return;
        }
        if ([K.ObjectLiteralExpression, K.ArrayLiteralExpression, K.CallExpression, K.NewExpression].includes(value.kind))
          add("variable", value, "default", scope);
        break;
      }
      case K.ImportClause:
        if (node.name) add("import", node.name, node.name.text, scope);
        if (node.namedBindings && ts.isNamespaceImport(node.namedBindings))
          add("import", node.namedBindings.name, node.namedBindings.name.text, scope);
        break;
      case K.ImportSpecifier:
      case K.ImportEqualsDeclaration:
        add("import", node.name, node.name.text, scope);
        break;
    }
    ts.forEachChild(node, (child) => walk(child, inner));
  }
  walk(source, { name: "", local: false });
  return found;
}

const options = {
  allowJs: true, checkJs: true, noEmit: true, noResolve: true, noLib: true, types: [], skipLibCheck: true,
  noUnusedLocals: true, noUnusedParameters: false, jsx: ts.JsxEmit.Preserve,
  target: ts.ScriptTarget.ESNext, module: ts.ModuleKind.ESNext, experimentalDecorators: true,
};
for (const path of paths) {
  const text = fs.readFileSync(path, "utf8").replace(/^\uFEFF/, "");
  const answer = { path };
  if (wantsUnused) {
    const program = ts.createProgram([path], options);
    const source = program.getSourceFile(path);
    answer.unused = program.getSemanticDiagnostics(source)
      .filter((diagnostic) => UNUSED.has(diagnostic.code))
      .map((d) => {
        const { line } = source.getLineAndCharacterOfPosition(d.start);
        return [line + 1, d.code, text.slice(d.start, d.start + d.length)];
      });
  } else {
    const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
    answer.errors = source.parseDiagnostics.length;
    answer.definitions = definitions(source);
  }
  console.log(JSON.stringify(answer));
}
