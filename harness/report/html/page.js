// Draws the page's charts with Vega.  Every chart's figure holds its rows and signals as JSON; ink comes from the
// page's style, so light, dark and paper need no second drawing.  Nothing is fetched, and expressions are interpreted,
// never compiled: the page's policy forbids both.
"use strict";
(() => {
	const root = document.documentElement;
	// Folded sections seem closed at once, and are when their charts are drawn.
	const sections = [...document.querySelectorAll("details.more")];
	for (const details of document.querySelectorAll("details[open]:not(.kept, .more)")) details.open = false;
	for (const section of sections) {
		section.classList.add("drawing");
		section.querySelector("summary").addEventListener("click", (event) => {
			if (section.classList.contains("drawing")) event.preventDefault();
			section.classList.remove("drawing");
		});
	}
	root.classList.remove("early");

	const LEAST = 60; // pixels that a view has
	const font = getComputedStyle(document.body).fontFamily;
	// Long words give way on a phone.
	const configOf = (width) => ({
		font,
		axis: { titleLimit: Math.max(180, width - 90) },
		legend: { columns: width < 340 ? 1 : width < 500 ? 2 : 0 },
		title: { limit: width - 20 },
	});

	// {"a": [1, 2]} -> [{"a": 1}, {"a": 2}]
	const rowsOf = (columns) => {
		const names = Object.keys(columns);
		const rows = [];
		for (let i = 0; i < (names.length ? columns[names[0]].length : 0); i++) {
			const row = {};
			for (const name of names) row[name] = columns[name][i];
			rows.push(row);
		}
		return rows;
	};

	// Charts are compiled Vega specifications (.vg.json), each once in the page, whoever draws it.
	const specs = {};
	for (const script of document.querySelectorAll("script[data-chart]")) specs[script.dataset.chart] = JSON.parse(script.textContent);

	// Signals of these names are the page's colours.
	const INKS = ["ink", "soft", "ground", "tint"];
	const setSignals = (spec, values) => {
		for (const signal of spec.signals) {
			if (INKS.includes(signal.name)) signal.value = `var(--${signal.name})`;
			if (signal.name in values) signal.value = values[signal.name];
		}
		if ("height" in values) spec.height = values.height;
	};
	const dropMarks = (group, name) => {
		group.marks = group.marks.filter((mark) => mark.name !== name && !mark.name.startsWith(name + "_"));
		for (const mark of group.marks) if (mark.marks) dropMarks(mark, name);
	};
	// A legend without entries has no size that Vega could lay out.
	const dropEmptyLegends = (spec) => {
		const hasRows = (name) => {
			const set = spec.data.find((one) => one.name === name);
			return set.source ? hasRows(set.source) : set.values.length > 0;
		};
		const hasNames = ({ domain }) => (domain.data ? hasRows(domain.data) : !domain.signal || spec.signals.find((one) => one.name === domain.signal).value.length > 0);
		const scaleOf = (legend) => spec.scales.find((scale) => Object.values(legend).includes(scale.name));
		if (spec.legends) spec.legends = spec.legends.filter((legend) => hasNames(scaleOf(legend)));
	};
	// The panel's series stand in columns of the table: its lines have a row for each value, and what is at the pointer
	// is said of all of them.
	const seriesOf = (rows, { series, format }) => {
		const number = vega.locale().format(format);
		const known = (value) => (value === null ? "unknown" : number(value));
		const names = Object.entries(series);
		return {
			rows: names.flatMap(([field, name]) => rows.map((row) => ({ t: row.t, series: name, value: row[field] }))),
			moments: rows.map((row, i) => ({
				begin: i ? rows[i - 1].t : 0, t: row.t,
				tip: Object.fromEntries([["until, s", row.t], ["part", row.phase], ...names.map(([field, name]) => [name, known(row[field])])]),
			})),
		};
	};
	const specOf = (chart, panel, width) => {
		const spec = structuredClone(specs[chart.file]);
		const data = { rows: chart.rows, ...chart.data, ...panel.data, ...(panel.series && seriesOf(chart.rows, panel)) };
		setSignals(spec, { ...chart.signals, ...panel.signals, ...chart.chosen, page_width: width });
		for (const set of spec.data) if (set.name in data) set.values = structuredClone(data[set.name]); // Vega marks rows
		for (const name of chart.drop) dropMarks(spec, name);
		if (panel.legend === false) delete spec.legends;
		dropEmptyLegends(spec);
		if (panel.axis === false) spec.axes = spec.axes.filter((axis) => axis.grid || axis.orient !== "bottom");
		if ("width" in spec) spec.width = width;
		return spec;
	};

	const tip = document.createElement("div");
	tip.id = "tip";
	tip.setAttribute("role", "tooltip");
	document.body.append(tip);
	// A text, or names with their values.
	const showTip = (handler, event, item, value) => {
		tip.classList.toggle("visible", value !== null && value !== undefined && value !== "");
		if (!tip.classList.contains("visible")) return;
		tip.replaceChildren();
		for (const parts of typeof value === "object" ? Object.entries(value) : [[String(value)]]) {
			const row = document.createElement("div");
			for (const part of parts) row.append(Object.assign(document.createElement("span"), { textContent: part }));
			tip.append(row);
		}
		const box = tip.getBoundingClientRect();
		const place = (at, size, room) => Math.max(0, at + 12 + size > room ? at - 12 - size : at + 12) + "px";
		tip.style.left = place(event.clientX, box.width, root.clientWidth);
		tip.style.top = place(event.clientY, box.height, innerHeight);
	};
	const quiet = () => logger;
	// A layer without rows (no fit, nothing predicted) has no extent: that is no fault.
	const warn = (...words) => (String(words[0]).startsWith("Infinite extent") || console.warn(...words), logger);
	const logger = { level: quiet, warn, error: (...words) => (console.error(...words), logger), info: quiet, debug: quiet };

	const signalsOf = (view, wanted) => Object.keys(view.getState({ signals: wanted, data: () => false }).signals || {});

	// All sliders of a map choose one slice of it together.
	const sliceOf = (chart) => chart.choices.map((choice) => chart.chosen[choice.param]).join("/");
	const choose = (chart) => {
		chart.chosen.slice = sliceOf(chart);
		for (const view of chart.plot.views || []) {
			for (const name of signalsOf(view, (one) => one in chart.chosen)) view.signal(name, chart.chosen[name]);
			view.runAsync();
		}
	};

	// A slider of the page's own: it says the chosen text, to screen readers too.
	const addChoice = (chart, choice) => {
		const label = document.createElement("label");
		const name = document.createElement("span");
		const input = document.createElement("input");
		const output = document.createElement("output");
		name.textContent = choice.label;
		Object.assign(input, { type: "range", min: 0, max: choice.values.length - 1, step: 1 });
		input.value = chart.chosen[choice.param];
		const say = () => {
			const value = choice.values[input.value];
			output.textContent = value;
			input.setAttribute("aria-valuetext", value);
		};
		input.addEventListener("input", () => {
			chart.chosen[choice.param] = Number(input.value);
			say();
			choose(chart);
		});
		say();
		label.append(name, input, output);
		chart.figure.querySelector(".choices").append(label);
	};

	// What a file binds to a text field is one of the page's own, too.
	const addSearch = (chart, signal) => {
		const label = document.createElement("label");
		const name = document.createElement("span");
		const input = document.createElement("input");
		name.textContent = signal.bind.name;
		input.type = signal.bind.input;
		input.addEventListener("input", () => {
			chart.chosen[signal.name] = input.value;
			choose(chart);
		});
		label.append(name, input);
		chart.figure.querySelector(".choices").append(label);
		chart.chosen[signal.name] = signal.value;
	};

	// Views below each other have widths of their own, without their axes: what is missing or too much is given to each.
	const fill = async (view, place, tries = 3) => {
		const spare = place.clientWidth - place.querySelector("svg").getBoundingClientRect().width;
		if (Math.abs(spare) < 2 || tries === 0) return;
		for (const name of signalsOf(view, (one) => /width$/i.test(one)))
			view.signal(name, Math.max(LEAST, Math.floor(view.signal(name) + spare)));
		await view.runAsync();
		await fill(view, place, tries - 1); // labels may have moved
	};

	// Opens whatever folds an element away, and goes there.
	const show = (element) => {
		for (let at = element; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
		element.scrollIntoView();
	};
	// A click on a mark opens its point, as a place of the history, so that "back" leads to the mark; a point that was not
	// measured, or of a page without such sections, has its numbers alone.
	const openPoint = (chart, point) => {
		const section = document.getElementById(`point-${point}`);
		if (section) {
			if (location.hash === `#${section.id}`) show(section);
			else location.hash = section.id;
			return;
		}
		const table = chart.figure.querySelector("details.behind table");
		const rows = pointCells(table).filter((cell) => numberIn(cell) === String(point)).map((cell) => cell.parentElement);
		if (rows.length === 0) return;
		for (const row of table.querySelectorAll(".chosen")) row.classList.remove("chosen");
		for (const row of rows) row.classList.add("chosen");
		table.closest("details").open = true;
		rows[0].scrollIntoView({ block: "center" });
	};
	// The cells of the column that numbers points.
	const numberIn = (cell) => cell.textContent.replace(/,/g, "");
	const pointCells = (table) => {
		const column = [...table.tHead.rows[0].cells].findIndex((cell) => cell.textContent.toLowerCase() === "point");
		return column < 0 ? [] : [...table.tBodies[0].rows].map((row) => row.cells[column]);
	};
	// So that a keyboard gets there, too.
	const linkPoints = (table) => {
		for (const cell of pointCells(table)) {
			const id = `point-${numberIn(cell)}`;
			if (!document.getElementById(id)) continue;
			const link = Object.assign(document.createElement("a"), { href: `#${id}`, textContent: cell.textContent });
			cell.replaceChildren(link);
		}
	};
	for (const table of document.querySelectorAll("table")) linkPoints(table);

	const drawPanel = async (chart, panel, width) => {
		const place = document.createElement("div");
		const spec = specOf(chart, panel, width);
		chart.plot.append(place);
		for (const signal of spec.signals) delete signal.bind;
		const view = new vega.View(vega.parse(spec, configOf(width), { ast: true }), {
			expr: vega.expressionInterpreter, renderer: "svg", container: place, hover: true, tooltip: showTip, logger,
		});
		await view.runAsync();
		view.addEventListener("click", (event, item) => {
			if (item && item.datum && "point" in item.datum) openPoint(chart, item.datum.point);
		});
		if (!("width" in spec)) await fill(view, place);
		// On the narrowest screens axes and labels may leave too little: the picture shrinks as a whole.
		const svg = place.querySelector("svg");
		if (svg.getBoundingClientRect().width > width) {
			svg.style.maxWidth = "100%";
			svg.style.height = "auto";
		}
		// To a screen reader it is a picture with a name; the table behind says what each mark would.
		for (const name of ["role", "aria-roledescription", "aria-label"]) place.removeAttribute(name);
		svg.setAttribute("aria-hidden", "true");
		return view;
	};

	const draw = async (chart) => {
		const width = chart.plot.clientWidth;
		for (const view of chart.plot.views || []) view.finalize();
		chart.plot.replaceChildren();
		chart.plot.views = [];
		for (const panel of chart.panels) chart.plot.views.push(await drawPanel(chart, panel, width));
		chart.width = width;
	};

	const charts = [];
	for (const plot of document.querySelectorAll(".plot")) {
		const figure = plot.closest("figure");
		const { columns, ...rest } = JSON.parse(figure.querySelector("script").textContent);
		const chart = { ...rest, figure, plot, rows: rowsOf(columns), chosen: {} };
		if (chart.panels.length === 0) chart.panels = [{}];
		for (const choice of chart.choices) {
			chart.chosen[choice.param] = choice.start;
			if (choice.values.length > 1) addChoice(chart, choice);
		}
		chart.chosen.slice = sliceOf(chart);
		for (const signal of specs[chart.file].signals) if (signal.bind) addSearch(chart, signal);
		charts.push(chart);
	}

	const drawNow = async (chart) => {
		try {
			await draw(chart);
			chart.plot.classList.add("drawn");
		} catch (error) {
			chart.plot.textContent = "This chart could not be drawn (" + error.message + "); its table has the numbers.";
			chart.plot.classList.add("failed");
			console.error(chart.figure.id, error);
		}
	};
	// One drawing after the other, however fast a window changes.
	const drawOne = (chart) => (chart.last = Promise.resolve(chart.last).then(() => drawNow(chart)));
	// What is written is seen before the first chart, and each chart as soon as it is drawn.
	const breathe = () => new Promise((resolve) => setTimeout(resolve));
	const drawAll = async () => {
		for (const chart of charts) {
			if (chart.figure.closest("details.point")) continue; // when it is opened
			await breathe();
			await drawOne(chart);
		}
		for (const section of document.querySelectorAll("details.drawing")) {
			section.open = false;
			section.classList.remove("drawing");
		}
		openTarget();
		root.dataset.drawnMs = Math.round(performance.now());
		root.dataset.charts = "drawn";
	};

	const openTarget = () => {
		const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
		if (target && target.closest("details:not([open])")) show(target);
	};
	window.addEventListener("hashchange", openTarget);

	// On paper nothing can be opened.
	let closed = [];
	window.addEventListener("beforeprint", () => {
		closed = sections.filter((section) => !section.open);
		for (const section of closed) section.open = true;
	});
	window.addEventListener("afterprint", () => {
		for (const section of closed) section.open = false;
	});

	// What is folded is drawn anew when it is opened.
	const redraw = () => {
		for (const chart of charts) {
			const point = chart.figure.closest("details.point"); // drawn the first time when it is opened
			const wanted = point ? point.open : chart.width;
			if (wanted && chart.plot.clientWidth > 0 && chart.width !== chart.plot.clientWidth) drawOne(chart);
		}
	};
	let timer;
	window.addEventListener("resize", () => {
		clearTimeout(timer);
		timer = setTimeout(redraw, 150);
	});
	for (const section of [...sections, ...document.querySelectorAll("details.point")]) section.addEventListener("toggle", redraw);
	drawAll();
})();
