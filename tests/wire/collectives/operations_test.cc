// Every operation, over types, reductions, sizes and kinds of memory.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <tuple>
#include <vector>

#include "tests/kernels/reference/combine.h"
#include "tests/wire/collectives/group_world.h"

namespace trireme::collectives::test {
namespace {

using kernels::ElementReduction;
using kernels::ReduceOp;
using transport::test::expect_no_errors;
using transport::test::random_bytes;
using transport::test::wait_for;
using Bytes = std::vector<std::byte>;

/// What a rank gives: numbers of very different sizes, or bytes that are numbers of any type.
Bytes numbers(const ElementReduction& reduction, std::int64_t count, int seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(static_cast<std::size_t>(count) * size_bytes(reduction.dtype));
  if (reduction.dtype == Dtype::kF32) {
    for (std::size_t i = 0; i < bytes.size(); i += 4) {
      // Any mantissa and sign, an exponent out of 16.
      const std::uint64_t bits = random();
      const auto word =
          static_cast<std::uint32_t>((bits & 0x807FFFFF) | ((120 + (bits >> 32) % 16) << 23));
      std::memcpy(bytes.data() + i, &word, 4);
    }
  } else {
    for (std::size_t i = 0; i < bytes.size(); i += 8) {
      const std::uint64_t word = random() & 0x3F3F'3F3F'3F3F'3F3F;
      std::memcpy(bytes.data() + i, &word, std::min(sizeof word, bytes.size() - i));
    }
  }
  return bytes;
}

/// The reference, computed once for all ranks and groups.
const Bytes& expected_of(const ElementReduction& reduction, std::int64_t count, int num_ranks,
                         int seed) {
  static std::mutex mutex;
  static std::map<std::tuple<Dtype, ReduceOp, std::int64_t, int, int>, Bytes> known;
  const std::lock_guard lock(mutex);
  const auto [entry, is_new] =
      known.try_emplace({reduction.dtype, reduction.op, count, num_ranks, seed});
  Bytes& result = entry->second;
  if (!is_new) return result;
  std::vector<Bytes> given;
  std::vector<const std::byte*> sources;
  for (int i = 0; i < num_ranks; ++i) given.push_back(numbers(reduction, count, seed + i));
  for (const Bytes& bytes : given) sources.push_back(bytes.data());
  result.resize(given[0].size());
  kernels::reference::combine(reduction, sources, result.data(), count);
  return result;
}

struct Reduced {
  ElementReduction reduction;
  std::int64_t count;
};

/// Below and above what fits a slot and a piece, and several pieces.
std::vector<Reduced> reduced_cases() {
  std::vector<Reduced> result;
  for (const std::int64_t count : {0, 1, 5, 1023, 1024, 1025, 65'536, 65'537, 300'001}) {
    result.push_back({{}, count});
  }
  for (const Dtype dtype : {Dtype::kF64, Dtype::kBf16, Dtype::kF16, Dtype::kI64, Dtype::kI16,
                            Dtype::kI8, Dtype::kBool}) {
    result.push_back({{dtype, ReduceOp::kSum}, 70'003});
    result.push_back({{dtype, ReduceOp::kMax}, 33});
  }
  result.push_back({{Dtype::kI32, ReduceOp::kXor}, 200'000});
  result.push_back({{Dtype::kBf16, ReduceOp::kRoundedSum}, 70'003});
  result.push_back({{Dtype::kF32, ReduceOp::kAverage}, 100'000});
  return result;
}

/// A rank's buffer: its own, or memory of the group.
class Buffer {
 public:
  Buffer(Group& group, bool is_shared, const Bytes& content)
      : own_(is_shared ? 0 : content.size()),
        bytes_(is_shared ? group.allocate(content.size()) : std::span(own_)) {
    std::copy(content.begin(), content.end(), bytes_.begin());
  }

  std::span<std::byte> bytes() const { return bytes_; }
  Bytes content() const { return {bytes_.begin(), bytes_.end()}; }

 private:
  Bytes own_;
  std::span<std::byte> bytes_;
};

/// Which ranks have shared buffers.
enum class Shared { kNone, kAll, kSome };

bool is_shared(Shared shared, int rank) {
  return shared == Shared::kAll || (shared == Shared::kSome && rank % 2 == 1);
}

/// allocate is called by all or none.
Buffer make_buffer(Group& group, Shared shared, const Bytes& content) {
  if (shared == Shared::kSome && !is_shared(shared, group.group_rank())) {
    group.allocate(content.size());
  }
  return {group, is_shared(shared, group.group_rank()), content};
}

class Operations : public transport::test::OverBackend {
 protected:
  static void run(int num_ranks, const std::function<void(Group&)>& body) {
    SCOPED_TRACE(std::to_string(num_ranks) + " ranks");
    expect_no_errors(run_group(GetParam(), num_ranks, body));
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, Operations, testing::ValuesIn(transport::test::kUsualBackends),
                         testing::PrintToStringParamName());

TEST_P(Operations, AllReduceIsTheTreeOverRanks) {
  for (const int num_ranks : {1, 2, 3, 4, 6}) {
    run(num_ranks, [&](Group& group) {
      int seed = 0;
      for (const auto& [reduction, count] : reduced_cases()) {
        seed += 100;
        Bytes data = numbers(reduction, count, seed + group.group_rank());
        wait_for(group.all_reduce({data, reduction.dtype}, reduction.op));
        EXPECT_TRUE(data == expected_of(reduction, count, num_ranks, seed)) << count;
        if (count % 2 == 1) wait_for(group.barrier());
      }
    });
  }
}

TEST_P(Operations, ReducersSumForTheOthers) {
  for (const auto& [num_ranks, reducers] : {std::pair{3, 1}, {5, 2}, {6, 3}}) {
    expect_no_errors(
        run_group(GetParam(), num_ranks,
                  [&](Group& group) {
                    const int with_data = num_ranks - reducers;
                    int seed = 0;
                    for (const auto& [reduction, count] : reduced_cases()) {
                      seed += 100;
                      const Bytes before = numbers(reduction, count, seed + group.group_rank());
                      Bytes data = before;
                      wait_for(group.all_reduce({data, reduction.dtype}, reduction.op));
                      EXPECT_TRUE(data == (group.group_rank() < with_data
                                               ? expected_of(reduction, count, with_data, seed)
                                               : before))
                          << count;
                    }
                    std::vector<float> one(1);
                    EXPECT_THROW(group.reduce_scatter(std::span(one)), Error);
                    wait_for(group.barrier());
                  },
                  {.deadline = std::chrono::seconds(20), .num_reducers = reducers}));
  }
}

TEST_P(Operations, AllReduceOverMemoryOfTheGroup) {
  for (const Shared shared : {Shared::kAll, Shared::kSome}) {
    for (const int num_ranks : {1, 2, 4, 5}) {
      run(num_ranks, [&](Group& group) {
        for (const std::int64_t count : {0, 1, 1025, 70'000, 300'001}) {
          const Bytes mine = numbers({}, count, 9 + group.group_rank());
          const Buffer buffer = make_buffer(group, shared, mine);
          wait_for(group.all_reduce({buffer.bytes(), Dtype::kF32}));
          EXPECT_TRUE(buffer.content() == expected_of({}, count, num_ranks, 9)) << count;
        }
      });
    }
  }
}

TEST_P(Operations, ReduceLeavesTheOthersAlone) {
  for (const Shared shared : {Shared::kNone, Shared::kAll}) {
    for (const int num_ranks : {1, 2, 3, 5}) {
      run(num_ranks, [&](Group& group) {
        for (const std::int64_t count : {0, 1, 3000, 70'000, 200'001}) {
          const int root = static_cast<int>(count) % num_ranks;
          const Bytes mine = numbers({}, count, 3 + group.group_rank());
          const Buffer buffer = make_buffer(group, shared, mine);
          wait_for(group.reduce({buffer.bytes(), Dtype::kF32}, root));
          const bool is_root = group.group_rank() == root;
          EXPECT_TRUE(buffer.content() == (is_root ? expected_of({}, count, num_ranks, 3) : mine));
        }
      });
    }
  }
}

/// Parts of very different sizes that make `total`.
std::vector<std::int64_t> uneven_counts(std::int64_t total, int num_ranks) {
  std::vector<std::int64_t> counts(num_ranks, 0);
  std::int64_t left = total;
  for (int i = num_ranks - 1; i > 0; --i) left -= counts[i] = left / (i % 2 == 0 ? 2 : 5);
  counts[0] = left;
  return counts;
}

TEST_P(Operations, ReduceScatterOfAnyParts) {
  for (const Shared shared : {Shared::kNone, Shared::kAll, Shared::kSome}) {
    for (const int num_ranks : {1, 2, 3, 5}) {
      run(num_ranks, [&](Group& group) {
        for (const std::int64_t count : {0, 1, 3001, 400'003}) {
          const auto counts = uneven_counts(count, num_ranks);
          const Bytes mine = numbers({}, count, 3 + group.group_rank());
          const Buffer buffer = make_buffer(group, shared, mine);
          const Elements data{buffer.bytes(), Dtype::kF32};
          wait_for(group.reduce_scatter(data, counts));
          Bytes expected = mine;
          const Bytes& sum = expected_of({}, count, num_ranks, 3);
          std::int64_t begin = 0;
          for (int i = 0; i < group.group_rank(); ++i) begin += counts[i];
          const std::int64_t end = begin + counts[group.group_rank()];
          std::copy(sum.begin() + begin * 4, sum.begin() + end * 4, expected.begin() + begin * 4);
          EXPECT_TRUE(buffer.content() == expected) << count;
        }
      });
    }
  }
}

TEST_P(Operations, ReduceScatterIntoAResultLeavesTheData) {
  for (const Shared shared : {Shared::kNone, Shared::kAll, Shared::kSome}) {
    for (const int num_ranks : {1, 2, 3, 5}) {
      run(num_ranks, [&](Group& group) {
        for (const std::int64_t count : {0, 1, 3001, 400'003}) {
          const auto counts = uneven_counts(count, num_ranks);
          const Bytes mine = numbers({}, count, 3 + group.group_rank());
          const Buffer buffer = make_buffer(group, shared, mine);
          Bytes result(static_cast<std::size_t>(counts[group.group_rank()]) * sizeof(float));
          wait_for(group.reduce_scatter({buffer.bytes(), Dtype::kF32}, counts, {}, result));
          const Bytes& sum = expected_of({}, count, num_ranks, 3);
          std::int64_t begin = 0;
          for (int i = 0; i < group.group_rank(); ++i) begin += counts[i];
          EXPECT_TRUE(std::equal(result.begin(), result.end(), sum.begin() + begin * 4)) << count;
          EXPECT_TRUE(buffer.content() == mine) << count;
        }
      });
    }
  }
}

TEST_P(Operations, ReduceScatterRefusesAResultThatIsNotApart) {
  run(2, [](Group& group) {
    std::vector<float> data(4);
    const std::vector<std::int64_t> halves = {2, 2};
    const auto bytes = std::as_writable_bytes(std::span(data));
    EXPECT_THROW(group.reduce_scatter(std::span(data), halves, {}, bytes.first(8)), Error);
    EXPECT_THROW(group.reduce_scatter(std::span(data), halves, {}, bytes.first(0)), Error);
    wait_for(group.barrier());
  });
}

TEST_P(Operations, AllGatherOfAnyParts) {
  for (const Shared shared : {Shared::kNone, Shared::kAll, Shared::kSome}) {
    for (const int num_ranks : {1, 2, 3, 5}) {
      run(num_ranks, [&](Group& group) {
        for (const std::int64_t count : {0, 1, 3001, 1'200'003}) {
          const auto counts = uneven_counts(count, num_ranks);
          Bytes all;
          for (int i = 0; i < num_ranks; ++i) {
            const Bytes part = random_bytes(i, counts[i]);
            all.insert(all.end(), part.begin(), part.end());
          }
          const Bytes mine = random_bytes(group.group_rank(), counts[group.group_rank()]);
          const Buffer buffer = make_buffer(group, shared, Bytes(count));
          wait_for(group.all_gather(mine, buffer.bytes(), counts));
          EXPECT_TRUE(buffer.content() == all) << count;
        }
      });
    }
  }
}

TEST_P(Operations, BroadcastFromEveryRootOverMemoryOfTheGroup) {
  for (const Shared shared : {Shared::kAll, Shared::kSome}) {
    run(3, [&](Group& group) {
      for (const int root : {0, 1, 2}) {
        const Bytes sent = random_bytes(root, 700'001);
        const bool is_root = group.group_rank() == root;
        const Buffer buffer = make_buffer(group, shared, is_root ? sent : Bytes(sent.size()));
        wait_for(group.broadcast(buffer.bytes(), root));
        EXPECT_TRUE(buffer.content() == sent);
      }
    });
  }
}

/// What rank `from` has for rank `to`.
Bytes letter(int from, int to, std::size_t bytes) { return random_bytes(from * 100 + to, bytes); }

TEST_P(Operations, AllToAll) {
  for (const Shared shared : {Shared::kNone, Shared::kAll, Shared::kSome}) {
    for (const int num_ranks : {1, 2, 3, 5}) {
      run(num_ranks, [&](Group& group) {
        for (const std::size_t part : {0, 1, 1000, 300'001}) {
          Bytes out, in;
          for (int i = 0; i < num_ranks; ++i) {
            const Bytes to = letter(group.group_rank(), i, part);
            const Bytes from = letter(i, group.group_rank(), part);
            out.insert(out.end(), to.begin(), to.end());
            in.insert(in.end(), from.begin(), from.end());
          }
          const Buffer send = make_buffer(group, shared, out);
          Bytes received(in.size());
          wait_for(group.all_to_all(send.bytes(), received));
          EXPECT_TRUE(received == in) << part;
        }
      });
    }
  }
}

TEST_P(Operations, AllToAllOfAnySizes) {
  for (const int num_ranks : {1, 2, 4}) {
    run(num_ranks, [&](Group& group) {
      const int own = group.group_rank();
      const auto size = [](int from, int to) {
        return static_cast<std::size_t>(from == to ? 7 : (from * 5 + to) % 3 * 90'001);
      };
      std::vector<Bytes> out(num_ranks), in(num_ranks);
      Sends sends;
      Receives recvs;
      for (int i = 0; i < num_ranks; ++i) {
        out[i] = letter(own, i, size(own, i));
        in[i].resize(size(i, own));
        sends.emplace_back(out[i]);
        recvs.emplace_back(in[i]);
      }
      wait_for(group.all_to_all(sends, recvs));
      for (int i = 0; i < num_ranks; ++i) EXPECT_TRUE(in[i] == letter(i, own, size(i, own)));
    });
  }
}

TEST_P(Operations, GatherAndScatter) {
  run(3, [&](Group& group) {
    const int own = group.group_rank();
    for (const int root : {0, 2}) {
      std::vector<Bytes> all(3);
      Receives recvs;
      Sends sends;
      for (int i = 0; i < 3; ++i) {
        all[i].resize(1000 * i);
        recvs.emplace_back(all[i]);
      }
      const Bytes mine = random_bytes(own, 1000 * own);
      wait_for(group.gather(mine, recvs, root));
      for (int i = 0; i < 3 && own == root; ++i) EXPECT_EQ(all[i], random_bytes(i, 1000 * i));
      for (const Bytes& bytes : all) sends.emplace_back(bytes);
      Bytes back(1000 * own);
      wait_for(group.scatter(sends, back, root));
      EXPECT_EQ(back, mine);
    }
  });
}

}  // namespace
}  // namespace trireme::collectives::test
