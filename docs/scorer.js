/* How the site's search orders what it found: pages that answer a question before lists and records.
   Sphinx puts this into searchtools.js (html_search_scorer in conf.py). */
var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 3,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  score: (result) => {
    const [docname, , , , score, , kind] = result;
    const heading = kind === "title" ? 5 : 0; // leads to the place itself
    if (/^(how_to|tutorials)\//.test(docname)) return score + heading + 4;
    if (/^(explanation|reference)\//.test(docname)) return score + heading + 3;
    if (/^made\/outside\/(measured|changelog|benchmarks)/.test(docname)) return score - 10;
    return score;
  },
};
