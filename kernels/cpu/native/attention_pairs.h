// Attention in bf16 pairs, for models whose activations are bf16, where the machine multiplies such pairs.
#pragma once
#include "attention_tasks.h"

// Whether attention_pairs can serve: it is so for all steps of a model or for none.
bool has_attention_pairs(const Geometry &g);

// q: float32 [tokens, q_heads, dim] -> out: [tokens, q_heads, dim]. Ends with a wait.
void attention_pairs(const Geometry &g, const float *q, bf16 *out, const Team &team);
