// SPDX-License-Identifier: Apache-2.0
// The style sheet of report.html, as one constant. No script; tabs work by the page's address.
#pragma once

#include <string_view>

namespace report {

// The only style sheet of report.html. A tab is shown when it, or something in it, is the target of
// the page's address; the first one when nothing is. A browser without :has() (before 2023) shows
// all of them, one below the other.
inline constexpr std::string_view kHtmlStyle = R"css(
:root{color-scheme:light dark;--bg:#fff;--head:#f6f8fa;--text:#1f2328;--soft:#59636e;--line:#d1d9e0;
--link:#0550ae;--tab:#bc4c00;--good:#116329;--bad:#b3151f;--warn:#7d4e00;--goodbg:#dafbe1;
--badbg:#ffebe9;--warnbg:#fff8c5;--add:#dafbe1;--ins:#8fe3a5;--del:#ffebe9;--cut:#ffb3ad;
--hunk:#ddf4ff;--code:#eff2f5;--pill:#d1d9e0}
@media(prefers-color-scheme:dark){:root{--bg:#0d1117;--head:#151b23;--text:#f0f6fc;--soft:#9aa4b0;
--line:#3d444d;--link:#79b8ff;--tab:#f78166;--good:#56d364;--bad:#ff8a84;--warn:#e3b341;
--goodbg:#12301d;--badbg:#3c1618;--warnbg:#332700;--add:#12301d;--ins:#1f6d38;--del:#3c1618;
--cut:#8e2b2f;--hunk:#14243a;--code:#1d242d;--pill:#3d444d}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--text);font:15px/1.5 system-ui,-apple-system,"Segoe UI",
"DejaVu Sans",sans-serif}
header{background:var(--head);border-bottom:1px solid var(--line);padding:1.4rem 1.75rem 0}
h1{font-size:1.35rem;line-height:1.35;margin:0 0 .5rem;overflow-wrap:anywhere}
.badge{display:inline-block;font-size:.85rem;line-height:1.4;padding:.15rem .75rem;border-radius:99px;
border:1px solid;margin-right:.4rem;vertical-align:.15em}
.badge.good{color:var(--good);background:var(--goodbg)}
.badge.bad{color:var(--bad);background:var(--badbg)}
.badge.warn{color:var(--warn);background:var(--warnbg)}
.good{color:var(--good)}.bad{color:var(--bad)}.warn{color:var(--warn)}.soft,footer{color:var(--soft)}
.status{margin:0;font-size:.87rem;display:flex;flex-wrap:wrap;gap:.15rem 1.1rem;overflow-wrap:anywhere}
a{color:var(--link)}
a:focus-visible,summary:focus-visible{outline:2px solid var(--link);outline-offset:2px}
.tabs{display:flex;flex-wrap:wrap;gap:.2rem;margin-top:.8rem}
.tabs a{padding:.5rem .85rem;color:var(--text);text-decoration:none;border-bottom:2px solid transparent}
.tabs a:hover{border-bottom-color:var(--line)}
.count{background:var(--pill);border-radius:99px;padding:.05rem .5rem;font-size:.8rem}
main{padding:1.2rem 1.75rem 2rem}
footer{padding:0 1.75rem 2rem;font-size:.85rem}
section,.card,.file,[id^=x]{scroll-margin-top:1rem}
section{scroll-margin-top:100vh;margin-bottom:2rem}
@supports selector(:has(a)){
section{display:none;margin:0}
section:target,section:has(:target),body:not(:has(section:target,section :target)) #verdict{display:block}
body:not(:has(section:target,section :target)) .tabs a[href="#verdict"],
body:has(#verdict:target,#verdict :target) .tabs a[href="#verdict"],
body:has(#changes:target,#changes :target) .tabs a[href="#changes"],
body:has(#network:target,#network :target) .tabs a[href="#network"],
body:has(#transcript:target,#transcript :target) .tabs a[href="#transcript"],
body:has(#log:target,#log :target) .tabs a[href="#log"],
body:has(#sandbox:target,#sandbox :target) .tabs a[href="#sandbox"]
{border-bottom-color:var(--tab);font-weight:600}}
.card,.file{border:1px solid var(--line);border-radius:8px;margin:0 0 1rem;overflow:hidden}
h2{font-size:1rem;margin:0;padding:.65rem 1rem;background:var(--head);border-bottom:1px solid var(--line)}
h2 small{font-weight:400;color:var(--soft);margin-left:.3rem}
h3{font-size:.78rem;text-transform:uppercase;letter-spacing:.03em;color:var(--soft);margin:1rem 0 .3rem}
h4{font-size:.8rem;color:var(--soft);margin:.2rem 1rem}
p{margin:.3rem 0}
.card>:last-child{border-bottom:0}
.row,.cause{padding:.55rem 1rem;border-bottom:1px solid var(--line);margin:0;overflow-wrap:anywhere}
.row .row{padding:.3rem 0;border:0}
.cause{display:flex;gap:.8rem}
.cause>:first-child{width:.9rem;text-align:center}
.cause>div{flex:1;min-width:0}
.cause .soft{font-size:.9rem}
.go{white-space:nowrap;font-size:.9rem}
.agent{border-style:dashed}
#findings>details>summary{padding:.45rem 1rem;background:var(--head);border-bottom:1px solid var(--line);
overflow-wrap:anywhere}
.filters{padding:.3rem 1rem .5rem;border-bottom:1px solid var(--line);font-size:.87rem;display:none}
@supports selector(:has(a)){.filters{display:block}}
fieldset{border:0;margin:.15rem 0;padding:0;display:flex;flex-wrap:wrap;gap:.1rem .9rem}
legend{float:left;width:5rem;padding:0;color:var(--soft)}
.banner{padding:.5rem 1rem;border:1px solid;border-radius:8px;margin:0 0 1rem}
code,pre,table.patch{font:12.5px/1.6 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
code{background:var(--code);border-radius:4px;padding:.1em .35em;overflow-wrap:anywhere}
pre{margin:0;padding:.5rem 1rem;white-space:pre-wrap;overflow-wrap:anywhere;tab-size:4}
.tag{font-size:.75rem;border:1px solid;border-radius:99px;padding:.03rem .5rem;white-space:nowrap}
.tag.plain{color:var(--soft)}
.columns{display:grid;grid-template-columns:minmax(11rem,17rem) minmax(0,1fr);gap:1.4rem}
.files{font-size:.87rem;position:sticky;top:1rem;align-self:start;max-height:calc(100vh - 2rem);overflow:auto}
.files h3:first-child{margin-top:0}
.files a{display:flex;justify-content:space-between;gap:.6rem;padding:.2rem .4rem;border-radius:6px;
color:var(--text);text-decoration:none}
.files a span{min-width:0;overflow-wrap:anywhere}
.files a small{white-space:nowrap}
.files a:hover{background:var(--code)}
.files a.bad{background:var(--badbg);color:var(--bad);margin-bottom:2px}
.files code,.file>summary code,.plain code{background:none;padding:0}
.files code{font-family:inherit;font-size:inherit}
.file>summary,.file.plain{padding:.55rem 1rem;overflow-wrap:anywhere}
.file>summary code,.file.plain code{font-weight:600;font-size:13.5px}
summary{cursor:pointer}
.file>summary{background:var(--head)}
.file[open]>summary{border-bottom:1px solid var(--line)}
.fact{padding:.1rem 1rem;margin:0;color:var(--soft);font-size:.87rem}
table{border-collapse:collapse;width:100%}
table.patch{table-layout:fixed}
table.patch td{padding:0 .6rem 0 1.4rem;vertical-align:top;white-space:pre-wrap;overflow-wrap:anywhere;
tab-size:4;position:relative}
table.patch td:nth-child(-n+2){width:3.4rem;padding:0 .5rem;text-align:right;color:var(--soft);
user-select:none;white-space:nowrap;overflow-wrap:normal}
tr.a td{background:var(--add)}tr.d td{background:var(--del)}
tr.a td:last-child::before,tr.d td:last-child::before{position:absolute;left:.5rem;user-select:none}
tr.a td:last-child::before{content:"+"}tr.d td:last-child::before{content:"−"}
tr.h td{background:var(--hunk);color:var(--soft)}
ins,del{text-decoration:none;border-radius:3px}ins{background:var(--ins)}del{background:var(--cut)}
.more>summary{padding:.15rem 1rem;background:var(--hunk);color:var(--soft);font-size:.85rem}
table.patch tr.f td{white-space:normal}
.finding{border:1px solid var(--line);border-left-width:4px;border-radius:6px;padding:.4rem .7rem;
margin:.4rem .6rem;font:14px/1.5 system-ui,"DejaVu Sans",sans-serif;color:var(--text);overflow-wrap:anywhere}
.finding.bad{border-color:var(--bad);background:var(--badbg)}
.finding.warn{border-color:var(--warn);background:var(--warnbg)}
tr.f .finding{margin:.4rem 0}
:target{outline:2px solid var(--tab);outline-offset:-2px}section:target{outline:0}
.host{border-bottom:1px solid var(--line)}
.host>summary{padding:.5rem 1rem;overflow-wrap:anywhere}
.host>summary>code{display:inline-block;min-width:min(21rem,75%)}
.host>summary .counts{margin-left:.6rem}
.counts span{margin-right:.5rem;white-space:nowrap}
table.stack th,table.stack td{padding:.3rem 1rem .3rem 0;text-align:left;vertical-align:top;font-size:.9rem;
overflow-wrap:anywhere}
table.stack th{font-weight:400;color:var(--soft);font-size:.8rem}
table.stack td:first-child,table.stack th:first-child{padding-left:2.2rem;white-space:nowrap}
.n{text-align:right;white-space:nowrap}
table.limits th{font-weight:400;text-align:left;padding:.35rem 1rem;width:9rem}
table.limits td{padding:.35rem 1rem .35rem 0}
progress{width:100%;min-width:5rem;height:.5rem;border:0;border-radius:99px;overflow:hidden;
appearance:none;background:var(--pill)}
progress::-webkit-progress-bar{background:var(--pill)}
progress::-webkit-progress-value{background:var(--link)}
progress::-moz-progress-bar{background:var(--link)}
.fired progress::-webkit-progress-value{background:var(--bad)}
.fired progress::-moz-progress-bar{background:var(--bad)}
.facts{margin:0;padding:.3rem 1rem}
.facts div{display:grid;grid-template-columns:8rem minmax(0,1fr);padding:.25rem 0}
.facts dt{color:var(--soft)}.facts dd{margin:0;overflow-wrap:anywhere}
.said{white-space:pre-wrap;overflow-wrap:anywhere;margin:.3rem 0 .5rem}
.step{border:1px solid var(--line);border-radius:8px;margin:.3rem 0}
.step>summary{padding:.35rem .8rem;overflow-wrap:anywhere}
.step pre{max-height:24rem;overflow:auto}
.nested{margin-left:1.6rem}
.log{max-height:none}
@media(max-width:44rem){header{padding:1rem .9rem 0}main{padding:.9rem .9rem 2rem}footer{padding:0 .9rem 2rem}
h1{font-size:1.15rem}.tabs a{padding:.45rem .55rem}.columns{grid-template-columns:minmax(0,1fr)}
.files{position:static;max-height:16rem}.cause{flex-wrap:wrap;gap:.2rem .7rem}.go{flex-basis:100%;padding-left:1.6rem}
table.patch td{padding-left:1.1rem;padding-right:.3rem}
table.patch td:nth-child(-n+2){width:2.2rem;padding:0 .25rem;font-size:10.5px;line-height:20px}
table.patch td:last-child::before{left:.25rem}
.host>summary>code{min-width:0}table.stack thead{display:none}table.stack tr{display:block;padding:.4rem 1rem;border-top:1px solid var(--line)}
table.stack td,table.stack td:first-child{display:inline;padding:0 .5rem 0 0}
table.limits tr{display:block;padding:.3rem 1rem}table.limits th,table.limits td{display:inline-block;padding:0 .6rem 0 0;width:auto}
table.limits td:last-child{display:block}.facts div{grid-template-columns:minmax(0,1fr)}}
@media print{section{display:block!important;margin-bottom:1.5rem}.tabs,.files,.filters{display:none}
.columns{display:block}.files{position:static}.card,.file,.step{break-inside:avoid-page}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}.step pre{max-height:none}}
@media print{details:not([open])::details-content{content-visibility:visible;block-size:auto}}
)css";

}  // namespace report
