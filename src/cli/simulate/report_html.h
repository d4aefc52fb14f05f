/* SPDX-License-Identifier: Apache-2.0 */
/* report_html.h - text, numbers and images as HTML, and the sections of the page. For report*.c and chart.c only.
 */
#ifndef FKT_CLI_SIMULATE_REPORT_HTML_H
#define FKT_CLI_SIMULATE_REPORT_HTML_H

#include "base/text.h"
#include "cli/simulate/report.h"

void fkt_html_text(struct fkt_text *t, const char *s); /* escaped for text and for quoted attributes; NULL is "" */
void fkt_html_count(struct fkt_text *t, uint64_t n);   /* 12,345 */
void fkt_html_bytes(struct fkt_text *t, uint64_t n);   /* 177 kB */
void fkt_html_png(struct fkt_text *t, const uint8_t *png, size_t len, const char *alt); /* <img> with its data in it */
void fkt_html_section(struct fkt_text *t, const char *id, const char *title,
                      int not_private); /* opens; the badge when not private */
void fkt_html_badge(struct fkt_text *t);
void fkt_html_style(struct fkt_text *t);
int fkt_report_arm_is_private(const struct fkt_report_arm *arm);

/* report_privacy.c */
void fkt_report_summary(struct fkt_text *t, const struct fkt_report *r);
void fkt_report_privacy(struct fkt_text *t, const struct fkt_report *r);

/* report_classes.c */
void fkt_report_classes(struct fkt_text *t, const struct fkt_report *r);

#endif
