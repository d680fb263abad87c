#include "tests/support/mutate_input.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "trireme/base/document.h"
#include "trireme/base/safetensors.h"
#include "trireme/error.h"

namespace trireme::testing {
namespace {

constexpr DocumentKind kKind{"trireme.sample", 1, true};
constexpr std::size_t kMostBytes = 10'000;
constexpr int kNumInputs = 300;

std::string sample() {
  return to_document_text(kKind, {{"counts", {1, 2, 3}}, {"name", "a"}, {"part", {{"x", 0.5}}}});
}

TEST(InputMutator, TheSameSeedMakesTheSameInputs) {
  InputMutator a(7), b(7), c(8);
  int differ = 0;
  for (int i = 0; i < kNumInputs; ++i) {
    const std::string input = a.mutate(sample(), kMostBytes);
    EXPECT_EQ(input, b.mutate(sample(), kMostBytes));
    differ += static_cast<int>(input != c.mutate(sample(), kMostBytes));
  }
  EXPECT_GT(differ, kNumInputs / 2);
}

// With a wrong hash every reader refuses a document before it looks at a field.
TEST(InputMutator, ManyChangedDocumentsHaveTheRightHash) {
  InputMutator mutator(1);
  const Json original = parse_document(kKind, sample(), "sample");
  int changed = 0;
  for (int i = 0; i < kNumInputs; ++i) {
    try {
      const std::string input = mutator.mutate(sample(), kMostBytes);
      changed += static_cast<int>(parse_document(kKind, input, "input") != original);
    } catch (const Error&) {
      continue;
    }
  }
  EXPECT_GT(changed, kNumInputs / 4);
}

TEST(InputMutator, ManyChangedHeadersHaveTheRightLength) {
  const std::vector<std::byte> data(8);
  const std::vector<std::byte> bytes =
      safetensors::to_bytes({{.name = "a", .dtype = Dtype::kF32, .shape = {2}, .bytes = data}});
  const std::string file(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  InputMutator mutator(1);
  int fitting = 0;
  for (int i = 0; i < kNumInputs; ++i) {
    const std::string input = mutator.mutate(file, kMostBytes);
    std::uint64_t length = 0;
    if (input.size() > sizeof length) std::memcpy(&length, input.data(), sizeof length);
    if (input == file || length == 0 || length > input.size() - sizeof length) continue;
    fitting += static_cast<int>(Json::accept(input.substr(sizeof length, length)));
  }
  EXPECT_GT(fitting, kNumInputs / 4);
}

TEST(InputMutator, LinesAreChangedByThemselvesAndNothingIsTooLong) {
  const std::string lines = "{\"step\": 1}\n{\"step\": 2}\n";
  InputMutator mutator(1);
  int whole = 0;
  for (int i = 0; i < kNumInputs; ++i) {
    const std::string input = mutator.mutate(lines, 20);
    EXPECT_LE(input.size(), 20U);
    whole += static_cast<int>(Json::accept(input.substr(0, input.find('\n'))));
  }
  EXPECT_GT(whole, kNumInputs / 4);
  EXPECT_LE(mutator.mutate("", kMostBytes).size(), kMostBytes);
}

}  // namespace
}  // namespace trireme::testing
