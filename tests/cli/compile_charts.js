// node compile_charts.js LIBRARIES FILE...: compiles and runs every chart of each report.html as the page does, and each
// .vl.json with its own sample rows, without a browser; a warning of Vega or Vega-Lite, a chart without marks, or a number
// that is not drawn is a fault.
"use strict";
const fs = require("fs");
const vm = require("vm");

const [libraries, ...reports] = process.argv.slice(2);
vm.runInThisContext(fs.readFileSync(libraries, "utf8"));
const { vega, vegaLite } = globalThis;

const WIDTHS = [1000, 300]; // a desk's and a phone's
const COMPOSED = ["vconcat", "hconcat", "concat", "spec"];

const logger = (said) => {
	const note = (kind) => (...words) => (said.push(kind + words.join(" ")), self);
	const self = { level: () => self, warn: note(""), error: note("error: "), info: () => self, debug: () => self };
	return self;
};

const rowsOf = (columns) => {
	const names = Object.keys(columns);
	const rows = [];
	for (let i = 0; i < (names.length ? columns[names[0]].length : 0); i++)
		rows.push(Object.fromEntries(names.map((name) => [name, columns[name][i]])));
	return rows;
};

const fit = (spec, width) => {
	for (const key of ["vconcat", "hconcat", "concat"]) if (spec[key]) return spec[key].forEach((part) => fit(part, width));
	if (spec.spec) return fit(spec.spec, width);
	if (!("width" in spec)) spec.width = width;
};

const countMarks = (item) => {
	if (item.marktype && item.marktype !== "group")
		return item.role === "mark" ? item.items.filter((one) => one.opacity !== 0).length : 0;
	return (item.items || []).reduce((sum, one) => sum + countMarks(one), 0);
};

// Positions that are no numbers: what the reader would not see.
const countLost = (item) => {
	if (item.marktype && item.marktype !== "group")
		return item.role === "mark" ? item.items.filter((one) => Number.isNaN(one.x) || Number.isNaN(one.y)).length : 0;
	return (item.items || []).reduce((sum, one) => sum + countLost(one), 0);
};

// Marks without ink: their scale's domain lacks the name that their row has.
const countInkless = (item) => {
	if (item.marktype && item.marktype !== "group")
		return item.role === "mark" ? item.items.filter((one) => !one.fill && !one.stroke && !one.shape).length : 0;
	return (item.items || []).reduce((sum, one) => sum + countInkless(one), 0);
};

const check = async (chart, width) => {
	const said = [];
	const spec = structuredClone(chart.spec);
	if (chart.columns) spec.datasets = { ...spec.datasets, rows: rowsOf(chart.columns) };
	if (COMPOSED.some((key) => key in spec)) fit(spec, width);
	else spec.width = spec.width || width;
	const compiled = vegaLite.compile(spec, { logger: logger(said) }).spec;
	const view = new vega.View(vega.parse(compiled), { renderer: "none", logger: logger(said) });
	await view.runAsync();
	const marks = countMarks(view.scenegraph().root);
	const lost = countLost(view.scenegraph().root);
	const inkless = countInkless(view.scenegraph().root);
	view.finalize();
	if (inkless > 0) said.push(inkless + " marks have no colour");
	if (marks === 0) said.push("draws nothing");
	if (lost > 0) said.push(lost + " marks have no place");
	return { marks, said };
};

// Its picture must be what the file says alone, in any editor of Vega-Lite.
const chartsOf = (file) => {
	const text = fs.readFileSync(file, "utf8");
	if (!file.endsWith(".vl.json"))
		return [...text.matchAll(/<script type="application\/json">(.*?)<\/script>/gs)].map(([, json]) => JSON.parse(json));
	const spec = JSON.parse(text);
	if (!/\/vega-lite\/v\d+\.json$/.test(spec.$schema) || !spec.title || !spec.description) throw new Error(file + " lacks $schema, title or description");
	return [{ title: spec.title, spec }];
};

const main = async () => {
	let faults = 0;
	for (const report of reports) {
		const found = chartsOf(report);
		if (found.length === 0) { console.log(report + ": no charts"); faults++; }
		for (const chart of found) {
			for (const width of WIDTHS) {
				const { marks, said } = await check(chart, width).catch((error) => ({ marks: 0, said: [String(error)] }));
				console.log(`${report}: ${chart.title}, ${width} wide: ${marks} marks${said.map((one) => "\n  " + one).join("")}`);
				faults += said.length;
			}
		}
	}
	process.exit(faults ? 1 : 0);
};
main();
