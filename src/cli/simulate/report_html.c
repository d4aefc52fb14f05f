/* SPDX-License-Identifier: Apache-2.0 */
/* report_html.c - text, numbers and images as HTML; the page's style.
 *
 * Class names, paths and the command line are untrusted, and a report is opened in a browser: every string passes
 * through fkt_html_text. The style keeps two colour tables, one for light and one for dark; charts name colours only
 * through it. */
#include "cli/simulate/report_html.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void fkt_html_text(struct fkt_text *t, const char *s)
{
    while (s && *s) {
        size_t n = fkt_utf8_length(s);
        switch (*s) {
        case '&': fkt_text_add(t, "&amp;"); break;
        case '<': fkt_text_add(t, "&lt;"); break;
        case '>': fkt_text_add(t, "&gt;"); break;
        case '"': fkt_text_add(t, "&quot;"); break;
        case '\'': fkt_text_add(t, "&#39;"); break;
        default:
            if (n == 0) fkt_text_add(t, "\xef\xbf\xbd");
            else if (fkt_control_length(s)) fkt_text_add(t, " ");
            else fkt_text_addn(t, s, n);
        }
        s += n ? n : 1;
    }
}

void fkt_html_count(struct fkt_text *t, uint64_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);
    for (int i = 0; i < len; i++) fkt_text_addf(t, "%s%c", i && (len - i) % 3 == 0 ? "," : "", digits[i]);
}

void fkt_html_bytes(struct fkt_text *t, uint64_t n)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
    double x = (double)n;
    int u = 0;
    while (x >= 999.5 && u < 4) {
        x /= 1000;
        u++;
    }
    fkt_text_addf(t, u && x < 9.95 ? "%.1f %s" : "%.0f %s", x, units[u]);
}

void fkt_html_png(struct fkt_text *t, const uint8_t *png, size_t len, const char *alt)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    fkt_text_add(t, "<img alt=\"");
    fkt_html_text(t, alt);
    fkt_text_add(t, "\" src=\"data:image/png;base64,");
    for (size_t i = 0; i < len; i += 3) {
        size_t have = len - i < 3 ? len - i : 3;
        uint32_t word =
            (uint32_t)png[i] << 16 | (have > 1 ? (uint32_t)png[i + 1] << 8 : 0) | (have > 2 ? png[i + 2] : 0);
        char four[4] = {digits[word >> 18], digits[word >> 12 & 63], have > 1 ? digits[word >> 6 & 63] : '=',
                        have > 2 ? digits[word & 63] : '='};
        fkt_text_addn(t, four, 4);
    }
    fkt_text_add(t, "\">");
}

void fkt_html_badge(struct fkt_text *t) { fkt_text_add(t, "<span class=\"badge\">not private: never publish</span>"); }

void fkt_html_section(struct fkt_text *t, const char *id, const char *title, int not_private)
{
    fkt_text_addf(t, "<section id=\"%s\">\n<h2>%s", id, title);
    if (not_private) {
        fkt_text_add(t, " ");
        fkt_html_badge(t);
    }
    fkt_text_add(t, "</h2>\n");
}

static const char style[] =
    ":root{color-scheme:light dark;--bg:#faf9f6;--card:#fff;--ink:#22262d;--soft:#626974;--line:#e5e2db;--tint:#f1efe9;"
    "--warn:#b3261e;--warnbg:#fcebe9;--ok:#2f7a55;--a0:#33739f;--a1:#d08a32;--a2:#5c9068;--a3:#8b6aa8;--a4:#b5574f;--"
    "a5:#87909c}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#15181d;--card:#1d2128;--ink:#e7e9ec;--soft:#a2a9b4;--line:#323842;--"
    "tint:#262b33;"
    "--warn:#ff8b80;--warnbg:#3a1f1e;--ok:#7cc79f;--a0:#6aaad6;--a1:#e2a95c;--a2:#86b992;--a3:#b49ad0;--a4:#dc8880;--"
    "a5:#8e97a3}}\n"
    "*{box-sizing:border-box}html{-webkit-text-size-adjust:100%}\n"
    "body{margin:0;background:var(--bg);color:var(--ink);font:16px/1.55 system-ui,-apple-system,'Segoe "
    "UI',Roboto,sans-serif}\n"
    "main{max-width:1080px;margin:0 auto;padding:40px 20px 64px}\n"
    "h1{font-size:2rem;line-height:1.2;letter-spacing:-.015em;margin:0 0 6px}"
    "h2{font-size:1.2rem;letter-spacing:-.005em;margin:0 0 12px;display:flex;flex-wrap:wrap;gap:6px "
    "12px;align-items:center}"
    "h3{font-size:1rem;margin:0 0 8px;display:flex;flex-wrap:wrap;gap:4px 10px;align-items:center}\n"
    "p{margin:0 0 12px;max-width:72ch}.lead{font-size:1.08rem}.sub,.note{color:var(--soft)}.note{font-size:.9rem}\n"
    "section{margin-top:28px;padding:24px;background:var(--card);border:1px solid var(--line);border-radius:14px}\n"
    "header{padding:0 4px}.banner{margin:0 0 24px;padding:14px "
    "18px;border-radius:12px;background:#b3261e;color:#fff;font-weight:600}\n"
    ".badge{display:inline-block;font-size:.72rem;font-weight:600;line-height:1;padding:5px "
    "9px;border-radius:11px;color:var(--warn);"
    "background:var(--warnbg);border:1px solid currentColor;white-space:nowrap;letter-spacing:.01em}\n"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin-top:20px}"
    ".tile{padding:14px 16px;border-radius:12px;background:var(--tint)}.tile "
    "b{display:block;font-size:1.45rem;line-height:1.25;"
    "font-weight:650;font-variant-numeric:tabular-nums}.tile span{color:var(--soft);font-size:.88rem}.tile "
    ".badge{margin-top:8px;color:var(--warn);"
    "font-size:.66rem;white-space:normal}\n"
    ".cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(290px,100%),1fr));gap:16px}"
    ".card{border:1px solid var(--line);border-radius:12px;padding:18px;border-top:4px solid var(--c,var(--a0))}"
    ".card .big{font-size:1.7rem;font-weight:650;line-height:1.2;margin:0 0 2px}.card p{font-size:.94rem}\n"
    "dl{display:grid;grid-template-columns:auto 1fr;gap:3px 14px;margin:10px 0 0;font-size:.9rem}dt{color:var(--soft)}"
    "dd{margin:0;overflow-wrap:anywhere;font-variant-numeric:tabular-nums}\n"
    ".shots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(440px,100%),1fr));gap:20px}figure{margin:0}"
    "figcaption{margin-bottom:8px;font-weight:600;display:flex;flex-wrap:wrap;gap:4px 10px;align-items:center}"
    "img{display:block;width:100%;height:auto;border-radius:10px;border:1px solid var(--line);background:#fff}\n"
    ".scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.92rem;font-variant-numeric:tabular-"
    "nums}"
    "th{font-weight:600;color:var(--soft);vertical-align:bottom}th,td{padding:6px "
    "10px;text-align:right;border-bottom:1px solid var(--line);"
    "white-space:nowrap}th:first-child,td:first-child{text-align:left}tbody tr:last-child td{border-bottom:0}"
    "th .badge{font-size:.62rem;white-space:normal;max-width:9em;margin-top:4px;text-align:center;line-height:1.15}\n"
    "th.sig,td.sig{text-align:left}.below{color:var(--warn);font-weight:600;font-size:.84rem}.best{font-weight:700}\n"
    "svg{display:block;width:100%;height:auto;font-family:inherit}svg.inline{display:inline-block;width:96px;height:"
    "10px;vertical-align:middle;"
    "margin-right:8px}svg text{fill:var(--soft)}svg .strong{fill:var(--ink);font-weight:600}svg "
    ".grid{stroke:var(--line)}"
    "svg .axis{stroke:var(--soft)}svg .mark{stroke:var(--warn);stroke-width:1.6;stroke-dasharray:5 4}svg "
    ".marktext{fill:var(--warn);font-weight:600}"
    "svg .chance{stroke:var(--soft);stroke-dasharray:3 4}svg .track{fill:var(--tint)}svg .cell{fill:var(--a0)}"
    "svg "
    ".on{fill:#fff;font-weight:600}.a0{fill:var(--a0);--c:var(--a0)}.a1{fill:var(--a1);--c:var(--a1)}.a2{fill:var(--a2)"
    ";--c:var(--a2)}"
    ".a3{fill:var(--a3);--c:var(--a3)}.a4{fill:var(--a4);--c:var(--a4)}.a5{fill:var(--a5);--c:var(--a5)}.bad{fill:var(-"
    "-warn)}\n"
    ".legend{display:flex;flex-wrap:wrap;gap:6px 18px;margin:0 0 10px;font-size:.9rem}.legend "
    "i{display:inline-block;width:12px;height:12px;"
    "border-radius:3px;background:var(--c);margin-right:7px}\n"
    "code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.84rem}pre{margin:0 0 "
    "14px;padding:12px 14px;border-radius:10px;"
    "background:var(--tint);white-space:pre-wrap;overflow-wrap:anywhere}\n"
    "footer{margin:28px 4px 0;color:var(--soft);font-size:.88rem}\n"
    "@media(max-width:560px){main{padding:24px 12px 40px}section{padding:16px}h1{font-size:1.55rem}}\n"
    "@media "
    "print{:root{color-scheme:light}body{background:#fff;font-size:11pt}main{max-width:none;padding:0}section{border-"
    "color:#ccc;break-inside:avoid;"
    "margin-top:14px}*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}\n";

void fkt_html_style(struct fkt_text *t) { fkt_text_add(t, style); }
