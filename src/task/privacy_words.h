/* SPDX-License-Identifier: Apache-2.0 */
/* privacy_words.h - a privacy promise explained in sentences. */
#ifndef FKT_TASK_PRIVACY_WORDS_H
#define FKT_TASK_PRIVACY_WORDS_H

#include "base/text.h"
#include "task/task.h"

/* Upper bound, in percent and rounded up to a tenth, on the success of a guess between two equally likely
 * neighbouring datasets; mu is the parameter of Gaussian DP. */
double fkt_guess_percent(double mu);

/* Plain text, one sentence per line, for a task with a federation: what is protected and how well, who adds the
 * noise, what is not protected. */
FKT_MUST_USE fkt_status fkt_privacy_words(struct fkt_text *out, const struct fkt_task *task);

#endif
