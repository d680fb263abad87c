#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <set>

#include "trireme/data.h"
#include "trireme/error.h"

namespace trireme::data {
namespace {

using ::testing::HasSubstr;

std::string complaint(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.message();
  }
  return "";
}

InMemorySource make_source() {
  return {3,
          {{{"x", Dtype::kF32, {2}}, share(std::vector<float>{0, 1, 10, 11, 20, 21})},
           {{"label", Dtype::kI64, {}}, share(std::vector<std::int64_t>{7, 8, 9})},
           {{"nothing", Dtype::kF32, {0, 4}}, nullptr}}};
}

TEST(InMemorySource, ReadsSamplesByIndex) {
  const InMemorySource source = make_source();
  EXPECT_EQ(source.num_samples(), 3);
  ASSERT_EQ(source.fields().size(), 3U);
  EXPECT_EQ(source.fields()[1], (Field{"label", Dtype::kI64, {}}));
  for (const std::int64_t index : {2, 0, 1}) {
    std::array<float, 2> x{};
    std::array<std::int64_t, 1> label{};
    const std::array<std::span<std::byte>, 3> destinations = {
        std::as_writable_bytes(std::span(x)), std::as_writable_bytes(std::span(label)), {}};
    source.read({index}, destinations);
    EXPECT_EQ(x, (std::array<float, 2>{10.0F * index, 10.0F * index + 1}));
    EXPECT_EQ(label[0], 7 + index);
  }
}

/// Each source differs in one thing from the first, often with the same bytes.
TEST(InMemorySource, IdentityTellsAllThatReadersSee) {
  const auto data = share(std::vector<std::uint8_t>{'b', 'c', 3, 4, 5, 6, 7, 8});
  const auto identity = [&](std::int64_t n, const Field& field, int offset = 0) {
    const std::shared_ptr<const void> begin(data,
                                            static_cast<const std::uint8_t*>(data.get()) + offset);
    return InMemorySource(n, {{field, begin}}).identity();
  };
  const std::string base = identity(1, {"a", Dtype::kU8, {4}});
  EXPECT_EQ(base, identity(1, {"a", Dtype::kU8, {4}}));
  std::set<std::string> all = {base};
  all.insert(identity(1, {"ab", Dtype::kU8, {3}}, 1));  // the same name and bytes in a row
  all.insert(identity(1, {"b", Dtype::kU8, {4}}));
  all.insert(identity(1, {"a", Dtype::kI8, {4}}));
  all.insert(identity(1, {"a", Dtype::kU8, {2, 2}}));
  all.insert(identity(1, {"a", Dtype::kU8, {4}}, 1));
  all.insert(identity(2, {"a", Dtype::kU8, {2}}));
  all.insert(identity(4, {"a", Dtype::kU8, {}}));
  all.insert(InMemorySource(1, {{{"a", Dtype::kU8, {2}}, data}, {{"b", Dtype::kU8, {2}}, data}})
                 .identity());
  EXPECT_EQ(all.size(), 9U);
}

/// Sample i is i times `factor`; says nothing of its identity.
class Anonymous : public Source {
 public:
  Anonymous(std::int64_t num_samples, std::uint8_t factor, std::string name = "x")
      : num_samples_(num_samples), factor_(factor), fields_{{std::move(name), Dtype::kU8, {1}}} {}
  std::int64_t num_samples() const override { return num_samples_; }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(Sample sample, std::span<const std::span<std::byte>> destinations) const override {
    EXPECT_LT(sample.index, num_samples_);
    last_read_ = sample.index;
    destinations[0][0] = static_cast<std::byte>(sample.index * factor_);
  }
  std::int64_t last_read() const { return last_read_; }

 private:
  std::int64_t num_samples_;
  std::uint8_t factor_;
  std::vector<Field> fields_;
  mutable std::int64_t last_read_ = -1;
};

// Resuming on other data of a source without an identity was accepted: loss 3.2 -> 5.0.
TEST(Fingerprint, TellsDataWithoutAnIdentityApart) {
  const std::string base = fingerprint(Anonymous(1000, 1));
  EXPECT_TRUE(base.starts_with("sampled "));
  EXPECT_EQ(base, fingerprint(Anonymous(1000, 1)));
  EXPECT_NE(base, fingerprint(Anonymous(1000, 3)));
  EXPECT_NE(base, fingerprint(Anonymous(1001, 1)));
  EXPECT_NE(base, fingerprint(Anonymous(1000, 1, "y")));
  for (const std::int64_t num : {0, 1, 2, 63, 64, 65, 1 << 20}) {
    const Anonymous source(num, 1);
    fingerprint(source);
    EXPECT_EQ(source.last_read(), num - 1);
  }
  const InMemorySource known = make_source();
  EXPECT_EQ(fingerprint(known), known.identity());
}

TEST(InMemorySource, KeepsItsDataAlive) {
  auto values = std::make_shared<std::vector<float>>(std::vector<float>{1, 2});
  const std::weak_ptr<std::vector<float>> watch = values;
  {
    const InMemorySource source(2, {{{"x", Dtype::kF32, {}}, {values, values->data()}}});
    values.reset();
    EXPECT_FALSE(watch.expired());
  }
  EXPECT_TRUE(watch.expired());
}

TEST(InMemorySource, RefusesReadsThatDoNotFit) {
  const InMemorySource source = make_source();
  std::array<std::byte, 8> a{}, b{};
  const std::vector<std::span<std::byte>> good = {a, b, {}};
  EXPECT_EQ(complaint([&] { source.read({0}, good); }), "");
  EXPECT_THAT(complaint([&] { source.read({3}, good); }), HasSubstr("no sample 3 among 3"));
  EXPECT_THAT(complaint([&] { source.read({-1}, good); }), HasSubstr("no sample -1"));
  EXPECT_THAT(complaint([&] { source.read({0}, std::span(good).first(2)); }),
              HasSubstr("expected 3 destinations, got 2"));
  EXPECT_THAT(complaint([&] {
                source.read({0}, std::vector<std::span<std::byte>>{a, std::span(b).first(4), {}});
              }),
              HasSubstr("field 'label': expected a destination of 8 bytes, got 4"));
}

TEST(InMemorySource, RefusesColumnsThatAreNone) {
  const auto make = [](std::int64_t n, std::vector<InMemorySource::Column> columns) {
    return complaint([&] { InMemorySource(n, std::move(columns)); });
  };
  const auto data = share(std::vector<float>{1});
  EXPECT_THAT(make(1, {}), HasSubstr("no fields"));
  EXPECT_THAT(make(-1, {{{"x"}, data}}), HasSubstr("-1"));
  EXPECT_THAT(make(1, {{{"x"}, data}, {{"x"}, data}}), HasSubstr("'x' appears twice"));
  EXPECT_THAT(make(1, {{{"x"}, nullptr}}), HasSubstr("'x': it has no data"));
  EXPECT_THAT(make(1, {{{"x", Dtype::kF32, {-1}}, data}}), HasSubstr("negative dimension"));
  constexpr std::int64_t kHuge = std::int64_t{1} << 61;
  EXPECT_THAT(make(1, {{{"x", Dtype::kF32, {kHuge}}, data}}), HasSubstr("64 bits"));
  EXPECT_THAT(make(4, {{{"x", Dtype::kU8, {kHuge}}, data}}), HasSubstr("64 bits"));
  EXPECT_EQ(make(0, {{{"x"}, data}}), "");
}

}  // namespace
}  // namespace trireme::data
