/* SPDX-License-Identifier: Apache-2.0 */
/* fedkt.h - the contents page: every public header, in the order that data walks, and the conventions they share.
 *
 *   version.h     the version of these headers
 *   status.h      how a call answers, and the sentence behind a failure
 *   image.h       labelled image sets in and out; splits, partitions over sites, sample sheets
 *   codec.h       the frozen public autoencoder and its public calibration: pixels <-> u
 *   moments.h     coordinates in a public ball, integers, exact class moments
 *   secagg.h      sites and server add integer vectors up, and nobody sees one of them
 *   privacy.h     what a release costs, and the mechanisms that add the noise: in one place, or in shares
 *   ledger.h      the account of a dataset, in a file that outlives the process
 *   records.h     which images are in some numbers, for the ledger
 *   federation.h  who adds up with whom, as a task says it, and one round of it inside a process
 *   synth.h       released numbers -> one Gaussian per class -> samples
 *   classifier.h  closed-form heads and scores, straight from the Gaussians
 *   learn.h       ResNets that learn from pictures in memory; their files, their judgement
 *   task.h        what all sites agree on and sign
 *   pipeline.h    images to moments under a task
 *   release.h     moments with noise: the file, the certificate, the class Gaussians
 *   generate.h    synthetic images from a release
 *   heads.h       closed-form heads from a release, scored on images
 *   train.h       pictures to learn from, out of a set or a release; the personalised protocol
 *   training_source.h  the images of each epoch of a training run
 *   model_data.h  a model and the images that it meets: classes by name, evaluation, training further
 *   simulate.h    many sites in one process
 *   sweep.h       a simulated federation at several epsilons, from images to accuracies
 *   service.h     where the server of a task is, and the operator's signature under the task
 *   keys.h        key files, their public parts, the roster of a federation
 *   mailbox.h     the joint between what carries messages and what they mean
 *   server.h      the server's side of a task over all its rounds
 *   client.h      a site's side of a task over all its rounds
 *   machine.h     whether BLAS knows this processor, and what to set where it does not
 *   join.h        a site's part in a federation over HTTPS, in one call; what it would send and cost
 *   serve.h       the server of a task over HTTPS, in one call
 *   verify.h      the checks that anybody can make on the files of a finished task
 *
 * Conventions
 *   Answers    A call that can fail returns fkt_status; FKT_OK is 0. After a failure fkt_error_text() holds a sentence
 *              and fkt_error_hint() perhaps what to do next, per thread. Outputs are then NULL, empty or as before.
 *   NULL       is allowed where a header says so and nowhere else. Every _free takes NULL, every _release a zeroed
 *              struct.
 *   Life       new/open and free: the library's storage. init/estimate/load and release: the caller's struct.
 *   Ownership  "borrows": until the call returns. "copies": keep or free yours. "takes": yours no longer.
 *              "gives": yours to free with the function named.
 *   Threads    Objects that are only read may be shared. An object that is being changed belongs to one thread.
 *              The library keeps no global state but the per-thread sentence, and runs BLAS on one thread inside
 *              each of its calls, so that results do not depend on the number of BLAS threads. The host's number is put
 *              back; do not set another one from a second thread while a call is under way.
 *   Arrays     row-major; the comment beside a pointer gives its shape, e.g. (K, m).
 *   Randomness Noise and keys come from the operating system: pass NULL where a struct fkt_entropy is asked for. Seeds
 *              that appear in headers choose public things (splits, samples), never noise; but for those called
 *              insecure_seed, which are for tests, and whose artifacts say NOT PRIVATE.
 *   Output     The library does not print, exit or abort. Files appear whole or not at all.
 *   Privacy    Un-noised moments (moments.h) are as secret as the images. What fkt_privacy_release has written may be
 *              shown to anyone, and everything after it costs nothing more. What fkt_privacy_share has written is
 *              PRIVATE until it is masked: one share of noise is too little, only a total of them may be shown.
 */
#ifndef FEDKT_FEDKT_H
#define FEDKT_FEDKT_H

#include "fedkt/classifier.h"
#include "fedkt/client.h"
#include "fedkt/codec.h"
#include "fedkt/federation.h"
#include "fedkt/generate.h"
#include "fedkt/heads.h"
#include "fedkt/image.h"
#include "fedkt/join.h"
#include "fedkt/keys.h"
#include "fedkt/learn.h"
#include "fedkt/ledger.h"
#include "fedkt/machine.h"
#include "fedkt/mailbox.h"
#include "fedkt/model_data.h"
#include "fedkt/moments.h"
#include "fedkt/pipeline.h"
#include "fedkt/privacy.h"
#include "fedkt/records.h"
#include "fedkt/release.h"
#include "fedkt/secagg.h"
#include "fedkt/serve.h"
#include "fedkt/server.h"
#include "fedkt/service.h"
#include "fedkt/simulate.h"
#include "fedkt/status.h"
#include "fedkt/sweep.h"
#include "fedkt/synth.h"
#include "fedkt/task.h"
#include "fedkt/train.h"
#include "fedkt/training_source.h"
#include "fedkt/verify.h"
#include "fedkt/version.h"

#endif
