// The threads of one parallel region: every kernel is called by all of them and shares its work out among them.
//
// A decoder step is one region. Between its parts the threads wait for each other by spinning, for no longer than a
// part takes when all of them run; where one was put off its core, the others yield theirs.
#pragma once
#include <atomic>
#include <cstdint>
#include <omp.h>
#include <sched.h>

#if defined(__x86_64__)
#define PAUSE() __builtin_ia32_pause()
#else
#define PAUSE() static_cast<void>(0)
#endif

struct Meeting {
    std::atomic<int> arrived{0}, generation{0};
    std::atomic<int64_t> next{0};
};

class Team {
public:
    const int rank, size;

    Team(int rank, int size, Meeting &meeting) : rank(rank), size(size), meeting(meeting) {}

    // What every thread wrote before is seen by all of them after.
    void wait() const {
        if (size == 1) {
            meeting.next.store(0, std::memory_order_relaxed);
            return;
        }
        const int before = meeting.generation.load(std::memory_order_acquire);
        if (meeting.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == size) {
            meeting.arrived.store(0, std::memory_order_relaxed);
            meeting.next.store(0, std::memory_order_relaxed);
            meeting.generation.store(before + 1, std::memory_order_release);
            return;
        }
        for (int spins = 0; meeting.generation.load(std::memory_order_acquire) == before; spins++) {
            if (spins < SPINS) PAUSE();
            else sched_yield();
        }
    }

    // How many of [0, n) are this thread's where they are split.
    int64_t part(int64_t n) const { return n * (rank + 1) / size - n * rank / size; }

    // work(i) for this thread's share of [0, n), in one piece; no wait.
    template <class Work> void split(int64_t n, Work work) const {
        const int64_t end = n * (rank + 1) / size;
        for (int64_t i = n * rank / size; i < end; i++) work(i);
    }

    // work(i) for [0, n), each by whichever thread is free, and a wait.
    template <class Work> void share(int64_t n, Work work) const {
        for (int64_t i; (i = meeting.next.fetch_add(1, std::memory_order_relaxed)) < n;) work(i);
        wait();
    }

private:
    static constexpr int SPINS = 2000;
    Meeting &meeting;
};

template <class Work> void with_team(int threads, Work work) {
    Meeting meeting;
#pragma omp parallel num_threads(threads)
    work(Team(omp_get_thread_num(), omp_get_num_threads(), meeting));
}
