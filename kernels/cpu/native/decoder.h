// What a decoder's branches are made of, as kernels/cpu/structs.py mirrors it field by field.
#pragma once
#include "attention.h"
#include "layer.h"
#include "linear.h"
#include "lora.h"
#include "store.h"

struct Adapted {
    Linear linear;
    Table table;
};

// Attention or, where q_heads is 0, a gated feed-forward. after.weight is null where the family has no such norm.
struct Branch {
    Norm before, after;
    Adapted first, second;  // q, k, v and o; gate, up and down
    Rotary rotary;
    Pages pages;
    Rule rule;
    int64_t q_heads, is_gelu;
};

// residual: float32 [tokens, hidden]; x, delta: [tokens, hidden]; wide: [tokens, widest first.out]; q: float32 [tokens,
// q_heads * dim]; narrow: [tokens, widest second.in]. Those without a type are in that of the activations.
struct Buffers {
    float *residual, *q;
    void *x, *wide, *narrow, *delta;
    uint8_t *codes;  // see linear.h
    int64_t hidden;
};
