// From the fused q, k, v of tokens to rotated q and to the K and V of their pages.
#pragma once
#include "paging.h"
#include "team.h"
#include "vec.h"

// cos, sin: [rows, half]; q_norm, k_norm: float32 [dim] or both null.
struct Rotary {
    const float *cos, *sin, *q_norm, *k_norm;
    int64_t half;
    float eps;
};

// qkv: [tokens, (q_heads + 2 kv_heads) dim] -> q: float32 [tokens, q_heads, dim]. Ends without a wait.
template <class T>
void rope_and_store(const T *qkv, const Rotary &rotary, float *q, int64_t q_heads, const Pages &pages,
                    const Batch &batch, const Team &team);
