// The small ops between GEMMs. Each ends without a wait; a thread takes whole rows.
#pragma once
#include "team.h"
#include "vec.h"

struct Norm {
    const float *weight;
    float eps;
};

// residual: float32 [rows, n], += delta (may be null); out = RMS norm of it times weight.
template <class T>
void add_norm(float *residual, const T *delta, const Norm &norm, T *out, int64_t rows, int64_t n, const Team &team);

// out = RMS norm of x times weight, both [rows, n]; out may be x.
template <class T> void norm_rows(T *x, const Norm &norm, T *out, int64_t rows, int64_t n, const Team &team);

// gate_up: [rows, 2n], gate first; out: [rows, n].
template <class T> void gate(const T *gate_up, T *out, int64_t rows, int64_t n, bool is_gelu, const Team &team);
