// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace report {

// The only style sheet of report.html.
inline constexpr std::string_view kHtmlStyle = R"css(
:root{color-scheme:light dark;--bg:#f6f7f9;--card:#fff;--text:#1c2128;--soft:#59636e;--line:#d8dde3;
--link:#0b5cc2;--good:#1a7f37;--bad:#c0242d;--warn:#8a5a00;--add:#e4f7e9;--del:#ffebe9;--hunk:#eef3fb;
--code:#f0f2f5}
@media(prefers-color-scheme:dark){:root{--bg:#0f1318;--card:#171c23;--text:#e3e8ee;--soft:#98a4b1;
--line:#2d353f;--link:#6cb0ff;--good:#4cc46a;--bad:#ff7b78;--warn:#e0ae4a;--add:#11301c;--del:#3b1719;
--hunk:#1a2536;--code:#212831}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--text);font:16px/1.5 system-ui,sans-serif}
main{max-width:62rem;margin:0 auto;padding:1.5rem 1rem 3rem}
header,section{background:var(--card);border:1px solid var(--line);border-radius:10px;
padding:1.1rem 1.3rem;margin:0 0 1rem}
header{border-left:6px solid var(--soft)}
header.good{border-left-color:var(--good)}
header.bad{border-left-color:var(--bad)}
header.warn{border-left-color:var(--warn)}
h1{font-size:1.45rem;line-height:1.25;margin:0}
h2{font-size:1.05rem;margin:0 0 .7rem}
h2 small{font-weight:400;color:var(--soft);margin-left:.4rem}
p{margin:.5rem 0}
.why{font-size:1.05rem}
.soft,footer{color:var(--soft)}
footer{font-size:.85rem;padding:0 .3rem;overflow-wrap:anywhere}
code,pre{font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
code{background:var(--code);border-radius:4px;padding:.1em .35em;overflow-wrap:anywhere}
pre{margin:0;overflow:auto;border-radius:8px}
pre.text{background:var(--code);padding:.8rem;white-space:pre-wrap;overflow-wrap:anywhere;max-height:32rem}
.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(12.5rem,1fr));gap:.55rem 1.6rem;
margin:1rem 0 0}
.facts div{min-width:0}
.facts .wide{grid-column:span 2}
.facts dt{font-size:.78rem;color:var(--soft)}
.facts dd{margin:0;overflow-wrap:anywhere}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%}
th{font-weight:400;font-size:.8rem;color:var(--soft);text-align:left}
th,td{padding:.35rem .8rem .35rem 0;vertical-align:top;border-bottom:1px solid var(--line)}
tr:last-child td{border-bottom:0}
td.k code{overflow-wrap:break-word}
td.n,th.n{text-align:right;white-space:nowrap}
.tag{font-size:.75rem;border:1px solid var(--line);border-radius:99px;padding:.05rem .5rem;
color:var(--soft);white-space:nowrap}
.tag.created,.tag.enforced{color:var(--good);border-color:currentColor}
.tag.deleted,.tag.unavailable,.tag.error{color:var(--bad);border-color:currentColor}
.tag.warn,.tag.emulated,.tag.renamed,.tag.warning{color:var(--warn);border-color:currentColor}
.plus{color:var(--good)}
.minus{color:var(--bad)}
p.bad,b.bad{color:var(--bad)}
.allow{margin:.9rem 0 0;padding:.8rem 1rem;border:1px dashed var(--line);border-radius:8px}
.allow p{margin:0 0 .5rem}
.allow pre{background:var(--code);padding:.6rem .8rem}
details.file{border:1px solid var(--line);border-radius:8px;margin:0 0 .7rem;overflow:hidden}
details.file:last-child{margin:0}
details.file>summary{padding:.5rem .8rem;cursor:pointer;overflow-wrap:anywhere}
details.file[open]>summary{border-bottom:1px solid var(--line)}
details.file code{background:none;padding:0;font-weight:600}
pre.patch{border-radius:0;padding:.3rem 0}
pre.patch>span{display:block;width:max-content;min-width:100%;padding-right:1rem}
pre.patch>span::before{content:attr(data-n);display:inline-block;width:3.2rem;padding-right:.7rem;
margin-right:.7rem;text-align:right;color:var(--soft);border-right:1px solid var(--line);user-select:none}
pre.patch .a{background:var(--add)}
pre.patch .d{background:var(--del)}
pre.patch .h{background:var(--hunk);color:var(--soft)}
progress{width:100%;min-width:5rem;height:.55rem;border:0;border-radius:99px;overflow:hidden;
appearance:none;background:var(--code);color:var(--link)}
progress::-webkit-progress-bar{background:var(--code)}
progress::-webkit-progress-value{background:var(--link)}
progress::-moz-progress-bar{background:var(--link)}
.controls{display:grid;grid-template-columns:repeat(auto-fill,minmax(15rem,1fr));gap:.1rem 1.6rem;
margin:0;padding:0;list-style:none}
.controls li{display:flex;justify-content:space-between;gap:.6rem;padding:.3rem 0;
border-bottom:1px solid var(--line)}
.controls small{display:block;color:var(--soft)}
@media(max-width:36rem){main{padding:.7rem .5rem 2rem}header,section{padding:.9rem .9rem}
h1{font-size:1.25rem}pre.patch>span::before{width:2.6rem}
.facts{grid-template-columns:repeat(auto-fill,minmax(8.5rem,1fr))}.facts .wide{grid-column:1/-1}
table.stack tr{display:block;padding:.5rem 0;border-bottom:1px solid var(--line)}
table.stack tr:last-child{border-bottom:0}table.stack tr.head{display:none}
table.stack td{display:block;border:0;padding:.1rem 0;text-align:left}
table.stack td[data-l]::before{content:attr(data-l) ": ";color:var(--soft);font-size:.85rem}}
@media print{body{background:none}header,section{break-inside:avoid}}
)css";

}  // namespace report
