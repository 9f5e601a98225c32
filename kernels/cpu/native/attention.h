// Paged attention of a batch's tokens.
#pragma once
#include "paging.h"
#include "team.h"
#include "vec.h"

struct Rule {
    float scale, cap;  // cap 0: none
    int64_t window;    // 0: none
};

// q: float32 [tokens, q_heads, dim] -> out: [tokens, q_heads, dim]. Ends with a wait.
template <class T>
void attention(const float *q, T *out, int64_t q_heads, const Pages &pages, const Batch &batch, const Rule &rule,
               const Team &team);
