// How data becomes nodes: text is only ever set as text.

const INVISIBLE =
  /[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** Control, invisible and direction-changing characters written out. */
function visible(value) {
  return String(value).replace(INVISIBLE, (c) => {
    const code = c.charCodeAt(0);
    return code < 256 ? "\\x" + code.toString(16).padStart(2, "0") : "\\u" + code.toString(16).padStart(4, "0");
  });
}

/** An element: el("a", {class: "x", href: "#"}, "text", node, ...). Strings become text nodes, null is left out. */
function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(key, value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(key, value);
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(visible(child)));
  }
  return node;
}

/** A stored value as text: numbers that JSON has no form for, and integers too long for the page's, are marked. */
function text(value) {
  if (value === null || value === undefined) return "–";
  if (Array.isArray(value)) return "[" + value.map(text).join(", ") + "]";
  if (typeof value === "object") {
    if (typeof value.$float === "string") return value.$float;
    if (typeof value.$int === "string") return value.$int;
    return "{" + Object.entries(value).map(([k, v]) => k + ": " + text(v)).join(", ") + "}";
  }
  return String(value);
}

const count = (n) => n.toLocaleString("en");

/** A region that scrolls sideways when it must, and can be scrolled with the keyboard. */
function scrolling(label, ...content) {
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": visible(label) }, ...content);
}
