"""Look and behaviour of the page; inline, because nothing may be fetched."""

CSS = """
:root{color-scheme:light dark;--text:#1c1e21;--soft:#5c6370;--back:#fff;--card:#f5f6f8;--line:#d9dce1;--accent:#2f6db5;
--bad:#b3261e;--good:#1a7f37}
@media (prefers-color-scheme:dark){:root{--text:#e6e7ea;--soft:#a2a8b4;--back:#15171a;--card:#1f2226;--line:#363a41;
--accent:#7db2f0;--bad:#ff8a80;--good:#6fd08c}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:60rem;padding:1rem;font:16px/1.5 system-ui,sans-serif;color:var(--text);
background:var(--back);overflow-wrap:anywhere}
h1{font-size:1.35rem;margin:.2rem 0}h2{font-size:1.1rem;margin:1.6rem 0 .5rem}
.state{display:inline-block;padding:.05rem .6rem;border-radius:1rem;border:1px solid currentColor;font-weight:600}
.bad,.error{color:var(--bad)}.good{color:var(--good)}.soft,small,figcaption,output{color:var(--soft)}
dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.15rem 1rem;margin:.5rem 0}
dt{color:var(--soft)}dd{margin:0}
.wide{overflow-x:auto;border:1px solid var(--line);border-radius:8px;background:#fff}
.wide svg{display:block}
ol.time,ul{padding-left:1.2rem}ol.time time{color:var(--soft);display:block;font-size:.85rem}
details{border:1px solid var(--line);border-radius:8px;padding:.4rem .7rem;margin:.5rem 0;background:var(--card)}
summary{cursor:pointer}
code,pre{font:13px/1.45 ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere}
pre{margin:.4rem 0;max-height:32rem;overflow-y:auto}
.line{display:grid;grid-template-columns:2.6rem minmax(0,1fr);gap:.5rem}
.line i{color:var(--soft);font:12px/1.6 ui-monospace,monospace;text-align:right;user-select:none}
.line small{display:block;border-left:2px solid var(--line);padding-left:.5rem;margin-bottom:.25rem}
.curve{margin:.8rem 0}.curve svg{width:100%;height:auto;touch-action:pan-y;font:12px system-ui,sans-serif}
.curve text{fill:var(--soft)}.curve .grid{stroke:var(--line)}
.curve polyline{fill:none;stroke:var(--accent);stroke-width:2}.curve circle{fill:var(--accent)}
.curve output{display:inline-block;font-variant-numeric:tabular-nums}
footer{margin-top:2rem;font-size:.85rem;color:var(--soft)}
@media print{details{break-inside:avoid}}
"""

JS = """
document.querySelectorAll('.curve').forEach(figure=>{
  const points=JSON.parse(figure.dataset.points),unit=figure.dataset.unit,svg=figure.querySelector('svg'),
    dot=figure.querySelector('circle'),said=figure.querySelector('output');
  let at=points.length-1;
  const show=index=>{at=Math.max(0,Math.min(points.length-1,index));const [x,y,step,value]=points[at];
    dot.setAttribute('cx',x);dot.setAttribute('cy',y);said.textContent=('step '+step+': '+value+' '+unit).trim()};
  const near=event=>{const box=svg.getBoundingClientRect(),width=svg.viewBox.baseVal.width,
    x=(event.clientX-box.left)/box.width*width,away=index=>Math.abs(points[index][0]-x);
    let best=0;points.forEach((point,index)=>{if(away(index)<away(best))best=index});show(best)};
  svg.addEventListener('pointermove',near);svg.addEventListener('pointerdown',near);
  svg.addEventListener('keydown',event=>{const step={ArrowLeft:-1,ArrowRight:1}[event.key];
    if(step){show(at+step);event.preventDefault()}});
});
"""
