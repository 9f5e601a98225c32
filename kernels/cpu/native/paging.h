// Where keys and values lie, and which of them each token of a batch may see; shapes as in kernels/paging.py.
#pragma once
#include <cstdint>

enum PageKind : int32_t { FLOAT32 = 0, E3M4 = 1, BF16 = 2 };

struct Pages {
    void *k, *v;
    float *k_scale, *v_scale;  // null but for e3m4 pages
    int64_t kv_heads, dim, page_size;
    PageKind kind;
};

struct Batch {
    const int32_t *positions, *angles, *run_of, *run_starts, *page_table;
    int64_t runs, table_width, tokens;
};
