// All branches of a decoder over a step's tokens: one call, one parallel region.
#include "decoder.h"

#include "upcoming.h"

namespace {

template <class T> struct Step {
    const Buffers &to;
    const Batch &batch;
    const Segments &segments;
    const Team &team;

    T *at(void *buffer) const { return static_cast<T *>(buffer); }

    void adapted(const T *x, const Adapted &a, T *y) const {
        Upcoming upcoming(a.table, segments, a.linear.in, sizeof(T), team);
        linear(x, a.linear, y, batch.tokens, team, to.codes, upcoming);
        team.wait();
        if (a.table.concerns(segments)) add_lora(y, x, a.linear.out, a.linear.in, a.table, segments, team);
    }

    void attend(const Branch &b) const {
        rope_and_store(at(to.wide), b.rotary, to.q, b.q_heads, b.pages, batch, team);
        team.wait();
        attention(to.q, at(to.narrow), b.q_heads, b.pages, batch, b.rule, team);
    }

    void feed(const Branch &b) const {
        gate(at(to.wide), at(to.narrow), batch.tokens, b.second.linear.in, b.is_gelu, team);
        team.wait();
    }

    void branch(const Branch &b, const T *delta) const {
        add_norm(to.residual, delta, b.before, at(to.x), batch.tokens, to.hidden, team);
        team.wait();
        adapted(at(to.x), b.first, at(to.wide));
        if (b.q_heads) attend(b);
        else feed(b);
        adapted(at(to.narrow), b.second, at(to.delta));
        if (!b.after.weight) return;
        norm_rows(at(to.delta), b.after, at(to.delta), batch.tokens, to.hidden, team);
        team.wait();
    }
};

template <class T>
void decode(const Branch *branches, int64_t count, const Buffers &to, const Batch &batch, const Segments &segments,
            const Team &team) {
    const Step<T> step{to, batch, segments, team};
    for (int64_t i = 0; i < count; i++) step.branch(branches[i], i ? step.at(to.delta) : nullptr);
}

}  // namespace

// What the last branch adds to the residual stream is left in delta.
extern "C" void veneer_decode(const Branch *branches, int64_t count, const Buffers *to, const Batch *batch,
                              const Segments *segments, int is_bf16, int threads) {
    with_team(threads, [&](const Team &team) {
        (is_bf16 ? decode<bf16> : decode<float>)(branches, count, *to, *batch, *segments, team);
    });
}
