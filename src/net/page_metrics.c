/* SPDX-License-Identifier: Apache-2.0 */
/* page_metrics.c - the same view for monitoring: Prometheus text exposition format 0.0.4.
 *
 * Every family has its HELP and TYPE once, before its samples. Counters end in _total, times are seconds (written with
 * six decimals from whole microseconds, so that no locale can put a comma there), states are one gauge per state that
 * is 1 for the present one. There is no label for a site: a thousand sites would be a thousand series, and alerts
 * are about numbers of sites.
 */
#include "net/page.h"

#include <string.h>

const uint64_t fkt_page_bounds_us[FKT_PAGE_BOUNDS] = {500,     1000,     2500,     5000,      10000,   25000,
                                                      50000,   100000,   250000,   500000,    1000000, 2500000,
                                                      5000000, 10000000, 30000000, UINT64_MAX};

static const char *const slots[] = {"away", "ready", "asked", "heard", "lost", "counted"};
enum { SLOTS = sizeof slots / sizeof *slots };
static const char *const phases[] = {"advertise", "coin", "share", "mask", "confirm", "reveal", "unmask"};

static void family(struct fkt_text *t, const char *name, const char *type, const char *help)
{
    fkt_text_addf(t, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void sample(struct fkt_text *t, const char *name, const char *label, const char *value, uint64_t x)
{
    if (label) fkt_text_addf(t, "%s{%s=\"%s\"} %llu\n", name, label, value, (unsigned long long)x);
    else fkt_text_addf(t, "%s %llu\n", name, (unsigned long long)x);
}

static void gauge(struct fkt_text *t, const char *name, const char *help, uint64_t x)
{
    family(t, name, "gauge", help);
    sample(t, name, NULL, NULL, x);
}

static void counter(struct fkt_text *t, const char *name, const char *help, uint64_t x)
{
    family(t, name, "counter", help);
    sample(t, name, NULL, NULL, x);
}

static void seconds(struct fkt_text *t, const char *name, uint64_t us)
{
    fkt_text_addf(t, "%s %llu.%06llu\n", name, (unsigned long long)(us / 1000000), (unsigned long long)(us % 1000000));
}

/* A label's value: the format escapes three characters. */
static void label_text(struct fkt_text *t, const char *s)
{
    for (; s && *s; s++) {
        if (*s == '\\' || *s == '"') fkt_text_addf(t, "\\%c", *s);
        else if (*s == '\n') fkt_text_add(t, "\\n");
        else fkt_text_addn(t, s, 1);
    }
}

static void about(struct fkt_text *t, const struct fkt_page_facts *f, uint64_t now_ms)
{
    family(t, "fedkt_info", "gauge", "The program and the task; always 1.");
    fkt_text_add(t, "fedkt_info{version=\"");
    label_text(t, f->version);
    fkt_text_add(t, "\",task=\"");
    label_text(t, f->task_sha256);
    fkt_text_add(t, "\",noise=\"");
    label_text(t, f->noise);
    fkt_text_add(t, "\"} 1\n");
    gauge(t, "fedkt_insecure", "1 when the task is seeded and nothing of it is private.", f->insecure != 0);
    family(t, "fedkt_start_time_seconds", "gauge", "When this process started, since 1970.");
    seconds(t, "fedkt_start_time_seconds", f->started_ms * 1000);
    family(t, "fedkt_time_seconds", "gauge", "The server's clock, since 1970.");
    seconds(t, "fedkt_time_seconds", now_ms * 1000);
}

static void progress(struct fkt_text *t, const struct fkt_mailbox_view *v)
{
    family(t, "fedkt_stage", "gauge", "1 for the stage that the task is in.");
    for (int s = FKT_STAGE_GATHERING; s <= FKT_STAGE_GIVEN_UP; s++)
        sample(t, "fedkt_stage", "stage", fkt_stage_name((enum fkt_stage)s), (int)v->stage == s);
    family(t, "fedkt_phase", "gauge", "1 for the phase that the round is in.");
    for (size_t p = 0; p < sizeof phases / sizeof *phases; p++)
        sample(t, "fedkt_phase", "phase", phases[p], v->phase && strcmp(v->phase, phases[p]) == 0);
    gauge(t, "fedkt_round", "Number of the round, from 1; 0 before the first.", v->round);
    family(t, "fedkt_phase_deadline_seconds", "gauge", "Deadline of the phase; 0: no phase.");
    seconds(t, "fedkt_phase_deadline_seconds", v->phase_until * 1000);
    counter(t, "fedkt_messages_total", "Messages of sites that were accepted, over all rounds.", v->messages);
    counter(t, "fedkt_message_bytes_total", "Bytes of those messages.", v->message_bytes);
    counter(t, "fedkt_log_entries_total", "Entries of the transparency log.", v->log_entries);
    family(t, "fedkt_refused_total", "counter", "Requests refused before their message was read.");
    for (uint32_t r = 0; r < v->n_refused; r++)
        sample(t, "fedkt_refused_total", "reason", fkt_refusal_name((enum fkt_refusal)r), v->refused[r]);
}

static void sites(struct fkt_text *t, const struct fkt_mailbox_view *v)
{
    uint64_t in[SLOTS] = {0};
    for (uint32_t i = 0; v->slot && i < v->sites; i++)
        if (v->slot[i] < SLOTS) in[v->slot[i]]++;
    family(t, "fedkt_sites", "gauge", "Sites by status.");
    for (size_t s = 0; s < SLOTS; s++) sample(t, "fedkt_sites", "status", slots[s], in[s]);
    gauge(t, "fedkt_sites_present", "Sites that are connected now.", v->ready);
    gauge(t, "fedkt_sites_expected", "Sites that this phase waits for.", v->expected);
    gauge(t, "fedkt_sites_heard", "Of those, the ones that have answered.", v->heard);
    gauge(t, "fedkt_sites_lost", "Sites that are out of this round.", v->lost);
    gauge(t, "fedkt_sites_survivors", "Sites whose data is in the sum.", v->survivors);
    gauge(t, "fedkt_sites_needed", "Sites that must stay for a release.", v->needed);
}

static void carrier(struct fkt_text *t, const struct fkt_page_counts *c)
{
    static const char name[] = "fedkt_request_duration_seconds";
    counter(t, "fedkt_requests_total", "Requests of all kinds.", c->requests);
    family(t, "fedkt_answers_total", "counter", "Answers by their class.");
    sample(t, "fedkt_answers_total", "code", "2xx", c->answers_2xx);
    sample(t, "fedkt_answers_total", "code", "4xx", c->answers_4xx);
    sample(t, "fedkt_answers_total", "code", "5xx", c->answers_5xx);
    counter(t, "fedkt_received_bytes_total", "Bytes of request bodies.", c->bytes_in);
    counter(t, "fedkt_sent_bytes_total", "Bytes of answer bodies.", c->bytes_out);
    gauge(t, "fedkt_connections", "Open connections.", c->connections);
    gauge(t, "fedkt_connections_parked", "Of those, the ones that wait for a message.", c->parked);
    gauge(t, "fedkt_event_streams", "Of those, status pages that are open.", c->streams);
    family(t, name, "histogram", "From a request's last byte to its answer; long waits not counted.");
    for (size_t i = 0; i + 1 < FKT_PAGE_BOUNDS; i++) {
        uint64_t us = fkt_page_bounds_us[i];
        fkt_text_addf(t, "%s_bucket{le=\"%llu.%06llu\"} %llu\n", name, (unsigned long long)(us / 1000000),
                      (unsigned long long)(us % 1000000), (unsigned long long)c->latency_le_us[i]);
    }
    fkt_text_addf(t, "%s_bucket{le=\"+Inf\"} %llu\n", name, (unsigned long long)c->latency_count);
    fkt_text_addf(t, "%s_sum %llu.%06llu\n", name, (unsigned long long)(c->latency_sum_us / 1000000),
                  (unsigned long long)(c->latency_sum_us % 1000000));
    fkt_text_addf(t, "%s_count %llu\n", name, (unsigned long long)c->latency_count);
}

void fkt_page_metrics(struct fkt_text *out, const struct fkt_page_facts *f, const struct fkt_mailbox_view *v,
                      const struct fkt_page_counts *c, uint64_t now_ms)
{
    about(out, f, now_ms);
    progress(out, v);
    sites(out, v);
    carrier(out, c);
}
