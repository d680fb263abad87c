// Figures have the width of the screen; on paper they get that of the page.
const plots = () => document.querySelectorAll(".plotly-graph-div");
addEventListener("beforeprint", () => plots().forEach((plot) => Plotly.relayout(plot, { width: 680 })));
addEventListener("afterprint", () => plots().forEach((plot) => Plotly.relayout(plot, { width: null })));
