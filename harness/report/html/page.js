// Draws the page's charts.  Every chart's figure holds its specification and rows as JSON; ink comes from the
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

	const GUTTER = 84; // beside a view among others, until it is known what its axis and labels take
	const LEAST = 60;
	const font = getComputedStyle(document.body).fontFamily;
	const text = { labelColor: "var(--soft)", titleColor: "var(--ink)", labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal" };
	// Long words give way on a phone.
	const configOf = (width) => ({
		font, background: null, padding: 2,
		view: { stroke: null, continuousHeight: 260 },
		axis: { ...text, gridColor: "var(--line)", domainColor: "var(--soft)", tickColor: "var(--soft)", labelLimit: 220, titlePadding: 8, titleLimit: Math.max(180, width - 90) },
		legend: { ...text, orient: "top", labelLimit: 260, titleLimit: 320, columnPadding: 18, columns: width < 340 ? 1 : width < 500 ? 2 : 0 },
		header: { ...text, labelFontSize: 12 },
		title: { color: "var(--ink)", fontSize: 13, fontWeight: 600, anchor: "start", subtitleColor: "var(--soft)", limit: width - 20 },
		text: { color: "var(--ink)", fontSize: 12 },
		rule: { color: "var(--soft)" },
		mark: { color: mlbenchSeries[0] },
		range: { category: mlbenchSeries, heatmap: { scheme: "viridis" }, ramp: { scheme: "viridis" } },
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

	const COMPOSED = ["vconcat", "hconcat", "concat", "spec"];
	const isComposed = (spec) => COMPOSED.some((key) => key in spec);
	const fit = (spec, width) => {
		const share = (parts) => (width - (parts - 1) * 20) / parts;
		if (spec.vconcat) for (const part of spec.vconcat) fit(part, width);
		else if (spec.hconcat) for (const part of spec.hconcat) fit(part, share(spec.hconcat.length));
		else if (spec.concat) for (const part of spec.concat) fit(part, share(spec.columns || spec.concat.length));
		else if (spec.spec) fit(spec.spec, share(spec.columns || 1));
		else if (!("width" in spec)) spec.width = Math.max(LEAST, Math.floor(width - GUTTER));
	};
	// Parameters of these names are the page's colours.
	const INKS = ["ink", "soft", "ground", "tint"];
	const specOf = (chart, width) => {
		const spec = structuredClone(chart.spec);
		for (const param of spec.params || []) if (INKS.includes(param.name)) param.value = `var(--${param.name})`;
		spec.datasets = { ...spec.datasets, rows: chart.rows };
		spec.description = chart.title;
		if (isComposed(spec)) fit(spec, width);
		else {
			if (!("width" in spec)) spec.width = "container";
			spec.autosize = { contains: "padding", ...spec.autosize };
		}
		return spec;
	};

	const options = {
		mode: "vega-lite", renderer: "svg", ast: true, actions: false, defaultStyle: false,
		tooltip: { disableDefaultStyle: true },
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
			if (chart.view) chart.view.signal(choice.param, Number(input.value)).runAsync();
		});
		say();
		label.append(name, input, output);
		chart.figure.querySelector(".choices").append(label);
	};

	// What a file binds to a text field is one of the page's own, too.
	const addSearch = (chart, param) => {
		const label = document.createElement("label");
		const name = document.createElement("span");
		const input = document.createElement("input");
		name.textContent = param.bind.name;
		input.type = param.bind.input;
		input.addEventListener("input", () => {
			chart.chosen[param.name] = input.value;
			if (chart.view) chart.view.signal(param.name, input.value).runAsync();
		});
		label.append(name, input);
		chart.figure.querySelector(".choices").append(label);
		chart.chosen[param.name] = param.value;
		delete param.bind;
	};

	// Views among others cannot be told to fill the page: what is missing or too much is given to all of them.
	const fill = async (chart) => {
		const svg = chart.plot.querySelector("svg");
		const names = Object.keys(chart.view.getState({ signals: (name) => /width$/i.test(name), data: () => false }).signals);
		const spare = chart.plot.clientWidth - svg.getBoundingClientRect().width;
		const beside = chart.spec.hconcat ? chart.spec.hconcat.length : 1;
		if (Math.abs(spare) < 2) return;
		for (const name of names) chart.view.signal(name, Math.max(LEAST, Math.floor(chart.view.signal(name) + spare / beside)));
		await chart.view.runAsync();
	};

	const draw = async (chart) => {
		const width = chart.plot.clientWidth;
		const spec = specOf(chart, width);
		for (const param of spec.params || []) if (param.name in chart.chosen) param.value = chart.chosen[param.name];
		if (chart.view) chart.view.finalize();
		const result = await vegaEmbed(chart.plot, spec, { ...options, config: configOf(width) });
		chart.view = result.view;
		if (isComposed(spec)) await fill(chart);
		// On the narrowest screens axes and labels may leave too little: the picture shrinks as a whole.
		const svg = chart.plot.querySelector("svg");
		if (svg.getBoundingClientRect().width > chart.plot.clientWidth) {
			svg.style.maxWidth = "100%";
			svg.style.height = "auto";
		}
		chart.width = width;
		// To a screen reader it is a picture with a name; the table behind says what each mark would.
		chart.plot.setAttribute("role", "img");
		chart.plot.removeAttribute("aria-roledescription");
		chart.plot.removeAttribute("aria-label");
		for (const svg of chart.plot.querySelectorAll("svg")) svg.setAttribute("aria-hidden", "true");
	};

	const charts = [];
	for (const plot of document.querySelectorAll(".plot")) {
		const figure = plot.closest("figure");
		const { title, spec, columns } = JSON.parse(figure.querySelector("script").textContent);
		const chart = { figure, plot, title, spec, rows: rowsOf(columns), chosen: {} };
		const choices = (spec.usermeta && spec.usermeta.choices) || [];
		for (const choice of choices) {
			chart.chosen[choice.param] = choice.start || 0;
			if (choice.values.length > 1) addChoice(chart, choice);
		}
		for (const param of spec.params || []) if (param.bind) addSearch(chart, param);
		charts.push(chart);
	}

	const drawOne = async (chart) => {
		try {
			await draw(chart);
			chart.plot.classList.add("drawn");
		} catch (error) {
			chart.plot.textContent = "This chart could not be drawn (" + error.message + "); its table has the numbers.";
			chart.plot.classList.add("failed");
			console.error(chart.figure.id, error);
		}
	};
	// What is written is seen before the first chart, and each chart as soon as it is drawn.
	const breathe = () => new Promise((resolve) => setTimeout(resolve));
	const drawAll = async () => {
		for (const chart of charts) {
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
		const section = target && target.closest("details.more");
		if (!section || section.open) return;
		section.open = true;
		target.scrollIntoView();
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
		for (const chart of charts)
			if (chart.plot.clientWidth > 0 && chart.width && chart.width !== chart.plot.clientWidth) drawOne(chart);
	};
	let timer;
	window.addEventListener("resize", () => {
		clearTimeout(timer);
		timer = setTimeout(redraw, 150);
	});
	for (const section of sections) section.addEventListener("toggle", redraw);
	drawAll();
})();
