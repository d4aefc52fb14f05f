/* SPDX-License-Identifier: Apache-2.0 */
/* linalg.c - matrix products and eigenvectors, by OpenBLAS and LAPACK.
 *
 *   row-major (ours)          column-major (LAPACK's)
 *   upper triangle      =     lower triangle of the same memory
 *   row i               =     column i
 *
 * So a symmetric matrix needs no transposition: LAPACK is passed 'L' where we mean upper, and the eigenvectors that it
 * leaves in its columns are our rows. LAPACKE then never allocates a transposed copy itself: the _work variants in
 * column-major order take all their memory from us, so that running out of it can be tested.
 *
 * LAPACK does not check for NaN and some of its loops never end on one, so every matrix is checked first (m^2
 * reads beside m^3 work). Eigenvectors have a sign by convention: the component of largest magnitude is positive, the
 * first on ties. The decomposition reads the upper triangle only; the lower one must still be finite.
 *
 * With several threads OpenBLAS adds up in another order, and results differ in their last bits. So every call here
 * runs BLAS on one thread, whatever the host has set: see alone(). Cost: syrk n*m^2 flops, gemm 2*n*m*k, eigen about
 * 9*m^3 (divide and conquer) and 2*m^2 numbers of workspace. */
#include "tensor/linalg.h"

#include "base/alloc.h"

#include <assert.h>
#include <cblas.h>
#include <lapacke.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

/* 1 + 6m + 2m^2, the workspace of dsyevd, must be an int */
#define FACTOR_MAX 32000U

/* ---- one thread inside each call ----
 *
 * OpenBLAS with its own threads has one number of them per process: the first of our calls that are under way at a time
 * saves the host's number and sets 1, the last one puts it back, unless the host has set another one meanwhile. The
 * host's own BLAS calls run on one thread until then. A host that sets the number from another thread just while one of
 * our calls starts may still give that call several threads; fedkt.h asks it not to. The same holds for OpenBLAS on
 * OpenMP: its number is one per process as well. */

static pthread_mutex_t calls_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned calls; /* running */
static int hosts;      /* threads that the host had set when the first of them began */

static void alone(void)
{
    pthread_mutex_lock(&calls_lock);
    if (calls++ == 0) hosts = openblas_get_num_threads();
    if (openblas_get_num_threads() != 1) openblas_set_num_threads(1);
    pthread_mutex_unlock(&calls_lock);
}

static void together(void)
{
    pthread_mutex_lock(&calls_lock);
    if (--calls == 0 && hosts != 1 && openblas_get_num_threads() == 1) openblas_set_num_threads(hosts);
    pthread_mutex_unlock(&calls_lock);
}

static int blas_int(size_t n)
{
    assert(n <= INT_MAX);
    return (int)n;
}

/* BLAS requires a leading dimension of at least 1, even of an empty matrix. */
static int leading(size_t n) { return n ? blas_int(n) : 1; }

void fkt_syrk(double *c, const double *x, size_t n, size_t m)
{
    if (n == 0 || m == 0) return;
    alone();
    cblas_dsyrk(CblasRowMajor, CblasUpper, CblasTrans, blas_int(m), blas_int(n), 1.0, x, blas_int(m), 1.0, c,
                blas_int(m));
    together();
}

void fkt_gemm(double *c, const double *a, const double *b, size_t n, size_t m, size_t k)
{
    if (n == 0 || k == 0) return;
    alone();
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, blas_int(n), blas_int(k), blas_int(m), 1.0, a, leading(m), b,
                leading(k), 0.0, c, leading(k));
    together();
}

void fkt_sgemm(float *c, const float *a, const float *b, size_t n, size_t m, size_t k)
{
    if (n == 0 || k == 0) return;
    alone();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, blas_int(n), blas_int(k), blas_int(m), 1.0F, a, leading(m),
                b, leading(k), 0.0F, c, leading(k));
    together();
}

void fkt_gemm_nt(double *c, const double *a, const double *b, size_t n, size_t m, size_t k)
{
    if (n == 0 || k == 0) return;
    alone();
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, blas_int(n), blas_int(k), blas_int(m), 1.0, a, leading(m), b,
                leading(m), 0.0, c, leading(k));
    together();
}

static fkt_status check_matrix(const double *a, size_t m, const char *verb)
{
    if (m > FACTOR_MAX) return fkt_fail(FKT_E_ARG, "cannot %s a matrix of side %zu: at most %u", verb, m, FACTOR_MAX);
    for (size_t i = 0; i < m * m; i++)
        if (!isfinite(a[i]))
            return fkt_fail(FKT_E_NUMERIC, "cannot %s a matrix: entry (%zu, %zu) is not finite", verb, i / m, i % m);
    return FKT_OK;
}

static void fix_sign(double *v, size_t m)
{
    size_t top = 0;
    for (size_t i = 1; i < m; i++)
        if (fabs(v[i]) > fabs(v[top])) top = i;
    if (v[top] < 0)
        for (size_t i = 0; i < m; i++) v[i] = -v[i];
}

fkt_status fkt_eigen(double *values, double *vectors, const double *a, size_t m)
{
    double *work = NULL, work_size = 0;
    lapack_int *iwork = NULL, iwork_size = 0, info;
    fkt_status st;

    FKT_TRY(check_matrix(a, m, "diagonalise"));
    if (m == 0) goto out;
    info = LAPACKE_dsyevd_work(LAPACK_COL_MAJOR, 'V', 'L', (lapack_int)m, vectors, (lapack_int)m, values, &work_size,
                               -1, &iwork_size, -1);
    assert(info == 0 && work_size >= 1 && work_size < INT_MAX && iwork_size >= 1);
    FKT_TRY(fkt_alloc(&work, (size_t)work_size));
    FKT_TRY(fkt_alloc(&iwork, (size_t)iwork_size));
    memcpy(vectors, a, m * m * sizeof *vectors);
    alone();
    info = LAPACKE_dsyevd_work(LAPACK_COL_MAJOR, 'V', 'L', (lapack_int)m, vectors, (lapack_int)m, values, work,
                               (lapack_int)work_size, iwork, iwork_size);
    together();
    if (info != 0) {
        st = fkt_fail(FKT_E_NUMERIC, "eigenvalues of a matrix of side %zu did not converge (%d)", m, (int)info);
        goto out;
    }
    for (size_t i = 0; i < m; i++) fix_sign(vectors + i * m, m);
out:
    fkt_free(work);
    fkt_free(iwork);
    return st;
}
