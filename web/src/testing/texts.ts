import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";

/**
 * Finds the texts of the page in the source, so that a test can say which of them a language lacks.
 *
 * A text is a literal first argument of t. Other calls, such as t(words[state]) or t(place.label), name their texts
 * elsewhere: each literal that can be the value of a property, of an element, of a variable or of a function counts
 * as a text if it reads like one, or if a call of t names its property, its table or its function. A table in a
 * function that a call of t names counts as well.
 */
export function textsOf(root: string): string[] {
  const sources = sourcesIn(root);
  const named = sources.map(namesInCalls).reduce(merge, { properties: new Set(), tables: new Set() });
  while (addTables(sources, named)) {}
  const texts = new Set<string>();
  for (const s of sources) {
    visit(s, (n) => {
      if (isText(n, named)) texts.add(n.text);
    });
  }
  return [...texts].sort();
}

/** Literals that read like a text and are none, or are the same in all languages. */
const exceptions = [
  /^[^a-z]*$/, // values of enums, numbers, signs
  /^[A-Z][a-z]+([A-Z][a-z]+)+$/, // types of the API
  /^[a-z]+([A-Z][a-z]+)+$|^(name|description)$/, // fields of the API
  /^[KMGTP]iB$/,
  /^\d+px|^(\d+ ){2}|sans-serif|monospace/, // values of CSS
  /\n/, // examples of files
  /^[\w/.]+\.(json|txt|yml)$|^text\/plain$|^\w+\.\w+$/, // names of files and media types
  /^\w+\.\w+\[/, // code
  /^(bucket\.)?endpoint\/|^g [a-z]$|^email profile$|^(Ctrl|Esc|bad|0 s|(disk|scope) bytes|berth|curl|disabled|xGMI|PCIe|NVLink|GPUDirect \w+)$/,
  /^(Android|(Headless )?Chrome|ChromeOS|Edge|Firefox|Linux|Opera|Safari|Windows|JavaScript|Python|Dockerfile|English)$/,
];

type Literal = ts.StringLiteral | ts.NoSubstitutionTemplateLiteral;

function sourcesIn(root: string) {
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.tsx?$/.test(name) && !/\.test\.tsx?$|\.d\.ts$|^testing\b/.test(name))
    .map((name) => ts.createSourceFile(name, readFileSync(join(root, name), "utf8"), ts.ScriptTarget.Latest, true));
}

function visit(n: ts.Node, see: (n: ts.Node) => void) {
  see(n);
  ts.forEachChild(n, (child) => visit(child, see));
}

const isLiteral = (n: ts.Node): n is Literal => ts.isStringLiteral(n) || ts.isNoSubstitutionTemplateLiteral(n);

const isT = (n: ts.Node): n is ts.CallExpression =>
  ts.isCallExpression(n) && ts.isIdentifier(n.expression) && n.expression.text === "t" && n.arguments.length > 0;

/** The names of the properties, and of the tables and functions, from which calls of t take their texts. */
interface Names {
  properties: Set<string>;
  tables: Set<string>;
}

const merge = (a: Names, b: Names): Names => ({
  properties: new Set([...a.properties, ...b.properties]),
  tables: new Set([...a.tables, ...b.tables]),
});

function namesInCalls(s: ts.SourceFile): Names {
  const names: Names = { properties: new Set(), tables: new Set() };
  const take = (n: ts.Expression): void => {
    if (ts.isPropertyAccessExpression(n)) names.properties.add(n.name.text);
    else if (ts.isElementAccessExpression(n) || ts.isCallExpression(n)) takeTable(n.expression);
    else if (ts.isBinaryExpression(n)) [n.left, n.right].forEach(take);
    else if (ts.isConditionalExpression(n)) [n.whenTrue, n.whenFalse].forEach(take);
    else if (ts.isSpreadElement(n) || isWrapper(n)) take(n.expression);
    else if (ts.isIdentifier(n)) takeSource(n);
  };
  // In list.map((x) => t(x)), the texts come from the list.
  const takeSource = (n: ts.Identifier) => {
    for (let at: ts.Node = n; !ts.isSourceFile(at); at = at.parent) {
      if (!ts.isArrowFunction(at) || !ts.isCallExpression(at.parent)) continue;
      const declares = at.parameters.some((p) => new RegExp(`\\b${n.text}\\b`).test(p.name.getText()));
      if (declares && ts.isPropertyAccessExpression(at.parent.expression))
        return takeTable(at.parent.expression.expression);
    }
  };
  const takeTable = (n: ts.Expression): void => {
    if (ts.isIdentifier(n)) names.tables.add(n.text);
    else if (ts.isElementAccessExpression(n) || isWrapper(n)) takeTable(n.expression);
    else if (ts.isPropertyAccessExpression(n) || ts.isCallExpression(n)) takeTable(n.expression);
  };
  visit(s, (n) => {
    if (isT(n)) take(n.arguments[0]!);
  });
  return names;
}

/** Adds the tables that named functions read. It reports whether there are new ones. */
function addTables(sources: ts.SourceFile[], named: Names) {
  const before = named.tables.size;
  for (const s of sources) {
    visit(s, (n) => {
      if (!ts.isElementAccessExpression(n) || !ts.isIdentifier(n.expression)) return;
      if (owner(n, named)) named.tables.add(n.expression.text);
    });
  }
  return named.tables.size > before;
}

const isWrapper = (
  n: ts.Node,
): n is ts.ParenthesizedExpression | ts.AsExpression | ts.SatisfiesExpression | ts.NonNullExpression =>
  ts.isParenthesizedExpression(n) || ts.isAsExpression(n) || ts.isSatisfiesExpression(n) || ts.isNonNullExpression(n);

function isText(n: ts.Node, named: Names): n is Literal {
  if (!isLiteral(n) || n.text === "") return false;
  const outer = carrier(n);
  if (isT(outer.parent)) return outer.parent.arguments[0] === outer;
  if (!isValue(outer) || exceptions.some((e) => e.test(n.text))) return false;
  return looksLikeText(n.text) || isNamed(outer, named);
}

/** The outermost expression whose value can be the literal. */
function carrier(n: ts.Node): ts.Node {
  const p = n.parent;
  if (isWrapper(p)) return carrier(p);
  if (ts.isConditionalExpression(p) && p.condition !== n) return carrier(p);
  if (ts.isBinaryExpression(p) && /^(\?\?|\|\||&&)$/.test(p.operatorToken.getText()) && p.right === n)
    return carrier(p);
  return n;
}

function isValue(n: ts.Node) {
  const p = n.parent;
  if (ts.isPropertyAssignment(p) && p.name === n) return / /.test(p.name.getText());
  if (ts.isPropertyAssignment(p) || ts.isVariableDeclaration(p) || ts.isBindingElement(p)) return p.initializer === n;
  if (ts.isArrayLiteralExpression(p) || ts.isReturnStatement(p)) return true;
  if (ts.isArrowFunction(p)) return p.body === n;
  if (ts.isBinaryExpression(p)) return p.operatorToken.kind === ts.SyntaxKind.EqualsToken && p.right === n;
  return false;
}

const looksLikeText = (text: string) => /^[A-Z][a-z]/.test(text) || / /.test(text.trim());

/** Reports whether the value belongs to a property, a table or a function that a call of t names. */
const isNamed = (n: ts.Node, named: Names) =>
  (ts.isPropertyAssignment(n.parent) && named.properties.has(n.parent.name.getText())) || owner(n, named);

/** Reports whether the table or the function that contains the node is named. */
function owner(n: ts.Node, named: Names) {
  for (let at = n; !ts.isSourceFile(at); at = at.parent) {
    if ((ts.isVariableDeclaration(at) && ts.isSourceFile(at.parent.parent.parent)) || ts.isFunctionDeclaration(at)) {
      return at.name !== undefined && named.tables.has(at.name.getText());
    }
  }
  return false;
}
