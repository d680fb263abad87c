// Unpacks plotly and draws the figures, in the colours that the reader's screen has.
const dark = matchMedia("(prefers-color-scheme: dark)");
const narrow = matchMedia("(max-width: 700px)");
const specs = () => document.querySelectorAll("script[data-for]");
const colors = () => (dark.matches
  ? { ink: "#e4e7eb", faint: "#323f4b", back: "#1f2933" }
  : { ink: "#1f2933", faint: "#e4e7eb", back: "white" });

function layoutOf(layout) {
  const { ink, faint, back } = colors();
  const own = { ...layout, font: { ...layout.font, color: ink }, paper_bgcolor: back, plot_bgcolor: back,
    hoverlabel: { bgcolor: back, font: { color: ink } } };
  for (const name of Object.keys(own)) {
    if (/^[xy]axis\d*$/.test(name)) own[name] = { ...own[name], gridcolor: faint };
  }
  if (narrow.matches) own.margin = { ...own.margin, l: 50, r: 8 };
  return own;
}

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

function draw() {
  // On a phone the buttons would cover the legend.
  const config = { displaylogo: false, responsive: true, displayModeBar: narrow.matches ? false : "hover",
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]] };
  for (const spec of specs()) {
    const { data, layout } = JSON.parse(spec.textContent);
    Plotly.react(spec.dataset.for, data, layoutOf(layout), config);
  }
}

async function start() {
  const script = document.createElement("script");
  script.textContent = await unpack(document.getElementById("plotly").textContent);
  document.head.append(script);
  draw();
  dark.addEventListener("change", draw);
}
start();

// Figures have the width of the screen; on paper they get that of the page.
const plots = () => document.querySelectorAll(".plot");
addEventListener("beforeprint", () => plots().forEach((plot) => Plotly.relayout(plot, { width: 680 })));
addEventListener("afterprint", () => plots().forEach((plot) => Plotly.relayout(plot, { width: null })));
