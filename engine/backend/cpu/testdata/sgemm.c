/* The rate of a BLAS on the products of a prefill: what BenchmarkPrefill is held against (docs/CPU.md).
 *
 *   cc -O2 sgemm.c -o sgemm -lopenblas -lm && OPENBLAS_NUM_THREADS=2 ./sgemm 512 60 6 192 320 512
 *
 * The arguments are tokens, passes, and the model: layers, hidden size, outputs of query, key and value together, and
 * width of the feed-forward part. A pass is the products of all layers, over weights of their own. It prints the best
 * and the median pass for weights stored by output (NT, as checkpoints have them) and by input (NN). */
#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

char *openblas_get_config(void);
char *openblas_get_corename(void);

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + 1e-9 * t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static float *uniform(size_t n) {
	float *v = aligned_alloc(64, (n * sizeof *v + 63) / 64 * 64);
	for (size_t i = 0; i < n; i++)
		v[i] = (float)rand() / RAND_MAX - .5f;
	return v;
}

/* y[tokens][out] = x[tokens][in] w, w stored [out][in] if by_output, else [in][out]. */
static void product(int by_output, int tokens, int out, int in, const float *x, const float *w, float *y) {
	if (by_output)
		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, tokens, out, in, 1, x, in, w, in, 0, y, out);
	else
		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, tokens, out, in, 1, x, in, w, out, 0, y, out);
}

int main(int argc, char **argv) {
	if (argc != 7) {
		fprintf(stderr, "usage: sgemm TOKENS PASSES LAYERS HIDDEN QKV INTERMEDIATE\n");
		return 2;
	}
	int tokens = atoi(argv[1]), passes = atoi(argv[2]), layers = atoi(argv[3]), hidden = atoi(argv[4]), qkv = atoi(argv[5]),
		wide = atoi(argv[6]);
	int shape[4][2] = {{qkv, hidden}, {hidden, hidden}, {2 * wide, hidden}, {hidden, wide}}; /* outputs, inputs */
	float **w = malloc(4 * layers * sizeof *w);
	double work = 0;
	for (int i = 0; i < 4 * layers; i++) {
		w[i] = uniform((size_t)shape[i % 4][0] * shape[i % 4][1]);
		work += 2. * tokens * shape[i % 4][0] * shape[i % 4][1];
	}
	size_t widest = 2 * wide + qkv;
	float *x = uniform(tokens * widest), *y = uniform(tokens * widest);

	/* Some old kernels compute nonsense on new processors. */
	product(1, tokens, qkv, hidden, x, w[0], y);
	double worst = 0;
	for (int t = 0; t < tokens; t += 37)
		for (int o = 0; o < qkv; o++) {
			double sum = 0;
			for (int i = 0; i < hidden; i++)
				sum += (double)x[t * hidden + i] * w[0][o * hidden + i];
			worst = fmax(worst, fabs(sum - y[t * qkv + o]));
		}
	fprintf(stderr, "%s, core %s, worst error %.2g\n", openblas_get_config(), openblas_get_corename(), worst);

	double *took = malloc(passes * sizeof *took);
	for (int by_output = 1; by_output >= 0; by_output--) {
		for (int p = 0; p < passes; p++) {
			double began = now();
			for (int i = 0; i < 4 * layers; i++)
				product(by_output, tokens, shape[i % 4][0], shape[i % 4][1], x, w[i], y);
			took[p] = now() - began;
		}
		qsort(took, passes, sizeof *took, ascending);
		printf("mode=%s best %.1f median %.1f GFLOP/s\n", by_output ? "NT" : "NN", work / took[0] / 1e9,
			work / took[passes / 2] / 1e9);
	}
	return worst > 1e-3;
}
