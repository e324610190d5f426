for (const block of document.querySelectorAll(".threshold")) {
  const {curves, bounds, axes} = JSON.parse(block.querySelector("script").textContent);
  const slider = block.querySelector("input"), choice = block.querySelector("select");
  const line = block.querySelector(".line"), here = block.querySelector(".here");
  const x = value => axes.left + (axes.right - axes.left) * value;
  const y = value => axes.bottom - (axes.bottom - axes.top) * value;
  const current = () => curves[choice ? choice.value : 0];
  const show = () => {
    const curve = current(), at = +slider.value, tp = curve.tp[at], fp = curve.fp[at];
    const fn = curve.positives - tp, tn = curve.negatives - fp;
    const metrics = {
      precision: tp + fp ? tp / (tp + fp) : 0,
      recall: tp / curve.positives,
      "false positive rate": fp / curve.negatives,
      F1: 2 * tp / (curve.positives + tp + fp),
    };
    const values = {
      threshold: curve.thresholds[at].toPrecision(4),
      "true positives": tp, "false positives": fp, "false negatives": fn, "true negatives": tn,
    };
    for (const [name, value] of Object.entries(metrics)) values[name] = value.toFixed(3);
    for (const cell of block.querySelectorAll("[data-name]")) {
      const value = values[cell.dataset.name];
      cell.textContent = Number.isInteger(value) ? value.toLocaleString("en") : value;
    }
    for (const item of block.querySelectorAll("[data-bound]")) {
      const name = item.dataset.bound, value = metrics[name.replaceAll("_", " ")];
      const met = name === "false_positive_rate" ? value <= bounds[name] : value >= bounds[name];
      item.className = met ? "met" : "missed";
      item.querySelector("b").textContent = met ? "✓ met here:" : "✗ not met here:";
    }
    here.setAttribute("cx", x(metrics.recall));
    here.setAttribute("cy", y(metrics.precision));
    slider.setAttribute("aria-valuetext", "threshold " + values.threshold);
  };
  slider.addEventListener("input", show);
  if (choice) choice.addEventListener("change", () => {
    const curve = current();
    const points = curve.recall.map((value, k) => `${x(value)},${y(curve.precision[k])}`);
    line.setAttribute("points", points.join(" "));
    slider.max = curve.thresholds.length - 1;
    slider.value = curve.start;
    show();
  });
  show();
}
