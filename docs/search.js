/* Asks the search of a built site, as its search page does: node docs/search.js SITE < questions, one a line.
   Prints for each question a line of JSON: the pages found, best first. */
"use strict";
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const site = process.argv[2];
const page = {
  console,
  document: { getElementById: () => null },
  localStorage: { setItem: () => {} },
  SPHINX_HIGHLIGHT_ENABLED: false,
  DOCUMENTATION_OPTIONS: {},
  _ready: () => {},
  _: (text) => text,
};
page.window = page;
vm.createContext(page);
for (const name of ["_static/language_data.js", "_static/searchtools.js"])
  vm.runInContext(fs.readFileSync(path.join(site, name), "utf8"), page);
vm.runInContext("globalThis.Search = Search;", page);
vm.runInContext(fs.readFileSync(path.join(site, "searchindex.js"), "utf8"), page);

for (const question of fs.readFileSync(0, "utf8").split("\n").filter(Boolean)) {
  const found = page.Search._performSearch(...page.Search._parseQuery(question)).reverse();
  console.log(JSON.stringify(found.map(([docname, title, anchor]) => [docname, title, anchor])));
}
