"use strict";
/* Draws the charts of a report from the data beside them, and makes tables sortable and commands copyable. */
(() => {
	/* Okabe and Ito's palette, which people with any colour vision can tell apart; each hue has a pattern of its own. */
	const LEAST_PX = 240;
	const HUES = ["#0072b2", "#009e73", "#e69f00", "#56b4e9", "#cc79a7", "#8a8f98", "#d55e00", "#b8a800"];
	const charts = [];
	let printing = false;

	const dark = () => !printing && matchMedia("(prefers-color-scheme: dark)").matches;
	const ink = () => dark() ? "#e6edf3" : "#1b1f24";
	const faint = () => dark() ? "#343c46" : "#d0d7de";
	const paper = () => dark() ? "#0f1419" : "#ffffff";

	/* A tile of the hue with lines: 0 plain, 1 rising, 2 falling, 3 level, 4 upright, 5 dots, 6 crossed, 7 thick. */
	function pattern(hue) {
		const tile = document.createElement("canvas");
		tile.width = tile.height = 8;
		const g = tile.getContext("2d"), kind = hue < 8 ? hue : (hue + 3) % 8;       /* a hue comes back with another pattern */
		g.fillStyle = HUES[hue % HUES.length];
		g.fillRect(0, 0, 8, 8);
		g.strokeStyle = g.fillStyle = "rgba(255,255,255,0.75)";
		g.lineWidth = kind === 7 ? 3 : 1.2;
		const line = (...p) => { g.beginPath(); g.moveTo(p[0], p[1]); g.lineTo(p[2], p[3]); g.stroke(); };
		if (kind === 1 || kind === 6 || kind === 7) { line(-1, 9, 9, -1); line(-1, 1, 1, -1); line(7, 9, 9, 7); }
		if (kind === 2 || kind === 6) { line(-1, -1, 9, 9); line(7, -1, 9, 1); line(-1, 7, 1, 9); }
		if (kind === 3) { line(0, 4, 8, 4); }
		if (kind === 4) { line(4, 0, 4, 8); }
		if (kind === 5) { g.beginPath(); g.arc(4, 4, 1.4, 0, 7); g.fill(); }
		return g.createPattern(tile, "repeat");
	}

	const digits = (v) => v === 0 ? "0" : Math.abs(v) >= 100 ? Math.round(v).toLocaleString("en-US") : String(Number(v.toPrecision(3)));

	function axis(title, more) {
		return Object.assign({
			title: { display: Boolean(title), text: title, color: ink() },
			ticks: { color: ink(), callback(v) { return typeof this.getLabelForValue === "function" && this.type === "category" ? this.getLabelForValue(v) : digits(v); } },
			grid: { color: faint(), borderColor: faint() }
		}, more || {});
	}

	/* Words drawn on the canvas beside a line or a point. */
	const marks = {
		id: "marks",
		afterDatasetsDraw(chart) {
			const spec = chart.$spec, g = chart.ctx, area = chart.chartArea;
			g.save();
			g.font = "12px system-ui, sans-serif";
			g.fillStyle = g.strokeStyle = ink();
			if (spec.line) {
				const x = chart.scales.x.getPixelForValue(spec.line.value);
				g.setLineDash([5, 4]);
				g.lineWidth = 1.5;
				g.beginPath();
				g.moveTo(x, area.top);
				g.lineTo(x, area.bottom);
				g.stroke();
				g.textAlign = x > (area.left + area.right) / 2 ? "right" : "left";
				g.fillText(spec.line.label, x + (g.textAlign === "right" ? -5 : 5), area.top - 5);
			}
			if (spec.ring) {
				const x = chart.scales.x.getPixelForValue(spec.ring.x), y = chart.scales.y.getPixelForValue(spec.ring.y);
				g.lineWidth = 2;
				g.beginPath();
				g.arc(x, y, 10, 0, 7);
				g.stroke();
				g.textAlign = x > (area.left + area.right) / 2 ? "right" : "left";
				g.fillText(spec.ring.label, x + (g.textAlign === "right" ? -15 : 15), y > area.top + 30 ? y - 13 : y + 24);
			}
			g.restore();
		}
	};

	const KINDS = {
		/* GPUs in powers of two; a shaded band around each line; hollow marks at zero where nothing fits. */
		scale(s) {
			const datasets = [];
			const STYLES = ["circle", "rect", "triangle", "rectRot", "star", "crossRot"];
			s.series.forEach((one, i) => {
				const hue = HUES[i % HUES.length], points = one.points;
				if (one.band) {
					datasets.push({ label: "", data: points.map((p) => ({ x: p.x, y: p.high })), borderWidth: 0, pointRadius: 0, fill: "+1", backgroundColor: hue + "33", band: true });
					datasets.push({ label: "", data: points.map((p) => ({ x: p.x, y: p.low })), borderWidth: 0, pointRadius: 0, band: true });
				}
				datasets.push({
					label: one.label, data: points.map((p) => ({ x: p.x, y: p.y })), borderColor: hue, backgroundColor: hue,
					borderDash: [[], [7, 4], [2, 3], [9, 3, 2, 3]][i % 4], pointStyle: STYLES[i % 6], pointRadius: 5, borderWidth: 2
				});
				if (one.hollow.length)
					datasets.push({ label: one.label + ", does not fit", data: one.hollow.map((x) => ({ x, y: 0 })), showLine: false, pointRadius: 6, pointStyle: STYLES[i % 6], borderColor: hue, backgroundColor: paper(), borderWidth: 2 });
			});
			const xs = [...new Set(s.series.flatMap((one) => one.points.map((p) => p.x).concat(one.hollow)))].sort((a, b) => a - b);
			return {
				type: "line", data: { datasets },
				options: { scales: {
					x: axis(s.x, { type: "logarithmic", min: xs[0] / 1.15, max: xs[xs.length - 1] * 1.15, afterBuildTicks(a) { a.ticks = xs.map((value) => ({ value })); },
						ticks: { color: ink(), callback: (v) => v.toLocaleString("en-US"), autoSkip: true } }),
					y: axis(s.y, { beginAtZero: true })
				} }
			};
		},
		/* Horizontal stacked bars. */
		bars(s) {
			const datasets = s.series.map((one) => ({ label: one.label, data: one.values, backgroundColor: pattern(one.hue), borderColor: paper(), borderWidth: 1 }));
			return {
				type: "bar", data: { labels: s.labels, datasets },
				options: { indexAxis: "y", layout: { padding: { top: 14 } }, scales: {
					x: axis(s.x, { stacked: true, beginAtZero: true, suggestedMax: s.line ? s.line.value * 1.03 : undefined }),
					y: axis("", { stacked: true, grid: { display: false } })
				} }
			};
		},
		front(s) {
			const points = (keep) => s.points.filter((p, i) => keep(i)).map((p) => ({ x: p.x, y: p.y, words: p.words }));
			return {
				type: "scatter", data: { datasets: [
					{ label: "knee", data: points((i) => i === s.knee), pointRadius: 8, pointStyle: "rectRot", backgroundColor: HUES[6], borderColor: HUES[6] },
					{ label: "plan", data: points((i) => i !== s.knee), pointRadius: 5, backgroundColor: HUES[0], borderColor: HUES[0] }
				] },
				options: { scales: { x: axis(s.x), y: axis(s.y) } }
			};
		},
		/* Bars from today's answer to that of each change, on a scale that shows the changes. */
		tornado(s) {
			const reach = Math.max(1e-6, ...s.less.concat(s.more).map((v) => v === null ? 0 : Math.abs(v - s.base)));
			const bar = (label, from, hue) => ({ label, data: from.map((v) => v === null ? null : [Math.min(s.base, v), Math.max(s.base, v)]), values: from, backgroundColor: pattern(hue), borderWidth: 0 });
			return {
				type: "bar", data: { labels: s.labels, datasets: [bar(s.lessLabel, s.less, 0), bar(s.moreLabel, s.more, 2)] },
				options: { indexAxis: "y", layout: { padding: { top: 14 } }, scales: { x: axis(s.x, { stacked: false, min: Math.max(0, s.base - 1.15 * reach), max: s.base + 1.15 * reach }), y: axis("", { stacked: true, grid: { display: false } }) } }
			};
		},
		/* Operations as floating bars, a row a stage. */
		timeline(s) {
			const rows = (list) => list.map((o) => ({ y: s.rows[o[0]], x: [o[1], o[2]], words: "micro-batch " + o[3] + ", chunk " + o[4] }));
			const one = (label, list, hue) => ({ label, data: rows(list), backgroundColor: pattern(hue), borderColor: paper(), borderWidth: { left: 0, right: 0.4, top: 0, bottom: 0 }, borderSkipped: false, grouped: false, barPercentage: 0.9, categoryPercentage: 0.95, minBarLength: 1 });
			return {
				type: "bar", data: { labels: s.rows, datasets: [one("forward", s.forward, 0), one("backward", s.backward, 2)] },
				options: { indexAxis: "y", scales: { x: axis(s.x, { min: 0, max: s.end }), y: axis("", { grid: { display: false } }) } }
			};
		}
	};

	function words(item) {
		const raw = item.raw, name = item.dataset.label;
		if (raw && raw.words && raw.x instanceof Array)
			return name + ", " + raw.words + ": " + digits(raw.x[0]) + " to " + digits(raw.x[1]);
		if (raw && raw.words)
			return raw.words;
		if (item.dataset.values)
			return name + ": " + digits(item.dataset.values[item.dataIndex]);
		if (raw && typeof raw === "object" && "y" in raw)
			return name + ": " + digits(raw.y) + " at " + digits(raw.x);
		return name + ": " + digits(typeof raw === "number" ? raw : 0);
	}

	function draw(canvas) {
		const spec = JSON.parse(document.getElementById(canvas.dataset.chart).textContent);
		const config = KINDS[spec.kind](spec);
		if (spec.rowHeight)
			canvas.parentElement.style.height = Math.max(printing ? 0 : LEAST_PX, spec.rowHeight * (spec.labels || spec.rows).length + 110) + "px";
		config.plugins = [{ id: "spec", beforeInit(chart) { chart.$spec = spec; } }, marks];
		config.options = Object.assign({ responsive: true, maintainAspectRatio: false, animation: false, normalized: true }, config.options);
		config.options.plugins = {
			legend: { position: "bottom", display: !spec.plain, labels: { color: ink(), usePointStyle: spec.kind === "scale", boxWidth: 22, filter: (l, data) => l.text !== "" && !(data.datasets[l.datasetIndex].band) && data.datasets[l.datasetIndex].data.length > 0 } },
			tooltip: { filter: (item) => !item.dataset.band, callbacks: { label: words } }
		};
		const chart = new Chart(canvas, config);
		charts.push(chart);
		return chart;
	}

	/* The arrow keys walk through the points of the chart that has the focus. */
	function walk(event) {
		const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
		const chart = Chart.getChart(event.target);
		if (!step || !chart)
			return;
		const all = [];
		chart.data.datasets.forEach((set, datasetIndex) => {
			if (!set.band)
				set.data.forEach((value, index) => { if (value !== null) all.push({ datasetIndex, index }); });
		});
		if (!all.length)
			return;
		chart.$at = ((chart.$at === undefined ? (step > 0 ? -1 : 0) : chart.$at) + step + all.length) % all.length;
		chart.setActiveElements([all[chart.$at]]);
		chart.tooltip.setActiveElements([all[chart.$at]], { x: 0, y: 0 });
		chart.update();
		event.preventDefault();
	}

	function redraw() {
		while (charts.length)
			charts.pop().destroy();
		document.querySelectorAll("canvas[data-chart]").forEach(draw);
	}

	function sort(button) {
		const head = button.closest("th"), table = head.closest("table"), column = [...head.parentElement.children].indexOf(head);
		const down = head.getAttribute("aria-sort") === "ascending";
		const value = (row) => {
			const text = row.children[column].textContent, number = parseFloat(text.replace(/[,$<]/g, ""));
			return Number.isNaN(number) ? text : number;
		};
		const order = (a, b) => typeof a === "number" && typeof b === "number" ? a - b : typeof a === typeof b ? a.localeCompare(b) : typeof a === "number" ? -1 : 1;
		const rows = [...table.tBodies[0].rows].map((row, i) => ({ row, i, v: value(row) }));
		rows.sort((a, b) => (down ? -1 : 1) * order(a.v, b.v) || a.i - b.i);
		rows.forEach((r) => table.tBodies[0].append(r.row));
		[...head.parentElement.children].forEach((th) => th.removeAttribute("aria-sort"));
		head.setAttribute("aria-sort", down ? "descending" : "ascending");
	}

	async function copy(button) {
		const code = button.parentElement.querySelector("code");
		try {
			await navigator.clipboard.writeText(code.textContent);
			button.textContent = "copied";
		} catch (e) {
			const range = document.createRange();
			range.selectNodeContents(code);
			getSelection().removeAllRanges();
			getSelection().addRange(range);
			button.textContent = "selected";
		}
		setTimeout(() => { button.textContent = "copy"; }, 2000);
	}

	document.querySelectorAll("button.sort").forEach((b) => b.addEventListener("click", () => sort(b)));
	document.querySelectorAll("button.copy").forEach((b) => b.addEventListener("click", () => copy(b)));
	document.querySelectorAll("canvas[data-chart]").forEach((c) => c.addEventListener("keydown", walk));
	redraw();
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
	addEventListener("beforeprint", () => {
		printing = true;
		document.documentElement.classList.add("printing");
		document.querySelectorAll("details:not([open])").forEach((d) => { d.open = true; d.dataset.opened = "print"; });
		redraw();
	});
	addEventListener("afterprint", () => {
		printing = false;
		document.documentElement.classList.remove("printing");
		document.querySelectorAll("details[data-opened]").forEach((d) => { d.open = false; delete d.dataset.opened; });
		redraw();
	});
})();
