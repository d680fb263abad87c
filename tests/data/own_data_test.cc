// The source that docs/guides/bring_your_own_data.md shows.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "tests/data/folder_files.h"
#include "trireme/data.h"

namespace data = trireme::data;
namespace {

/// Texts and their classes, from files of any form that has the fields `text` and `label`.
class Reviews : public data::Source {
 public:
  explicit Reviews(const std::string& path) : records_(data::open_records({path})) {}

  std::int64_t num_samples() const override { return records_->num_records(); }
  const std::vector<data::Field>& fields() const override { return fields_; }
  std::string identity() const override { return "reviews of " + records_->identity(); }

  void read(data::Sample sample, std::span<const std::span<std::byte>> to) const override {
    const auto text = records_->read(sample.index, "text");
    std::ranges::fill(to[0], std::byte{0});
    std::copy_n(text.begin(), std::min(text.size(), to[0].size()), to[0].begin());
    const std::int64_t label = number(sample.index, "label");
    std::memcpy(to[1].data(), &label, sizeof label);
  }

 private:
  std::int64_t number(std::int64_t index, const std::string& field) const {
    const auto bytes = records_->read(index, field);
    const auto* digits = reinterpret_cast<const char*>(bytes.data());
    std::int64_t value = 0;
    const auto [end, problem] = std::from_chars(digits, digits + bytes.size(), value);
    if (problem == std::errc() && end == digits + bytes.size()) return value;
    throw trireme::Error(trireme::ErrorKind::kCorruptData,
                         records_->name(index) + ": field '" + field + "' is no number");
  }

  std::shared_ptr<const data::RecordSource> records_;
  std::vector<data::Field> fields_ = {{"text", trireme::Dtype::kU8, {256}},
                                      {"label", trireme::Dtype::kI64, {}}};
};

using OwnData = data::FolderFiles;

std::string sample_of(const data::Source& source, std::int64_t index) {
  std::vector<std::byte> text(256), label(8);
  const std::span<std::byte> to[] = {text, label};
  source.read({.index = index}, to);
  return reinterpret_cast<const char*>(text.data()) + std::to_string(static_cast<int>(label[0]));
}

TEST_F(OwnData, OneSourceReadsRecordsOfEveryForm) {
  const Reviews lines(
      write("x.jsonl", "{\"text\": \"good\", \"label\": 1}\n{\"text\": \"bad\", \"label\": 0}"));
  const Reviews rows(write("x.csv", "label,text\n1,good\n0,bad\n"));
  for (const data::Source* source :
       {static_cast<const data::Source*>(&lines), static_cast<const data::Source*>(&rows)}) {
    ASSERT_EQ(source->num_samples(), 2);
    EXPECT_EQ(sample_of(*source, 0), "good1");
    EXPECT_EQ(sample_of(*source, 1), "bad0");
  }
  const auto both = data::mix({{std::make_shared<Reviews>(folder / "x.jsonl"), 3},
                               {std::make_shared<Reviews>(folder / "x.csv"), 1}});
  EXPECT_EQ(both->num_samples(), 4);
}

TEST_F(OwnData, ADamagedRecordIsNamedOrSkipped) {
  const auto reviews = std::make_shared<Reviews>(write("x.csv", "label,text\n1,good\nX,bad\n"));
  const trireme::Error error = data::error_of([&] { sample_of(*reviews, 1); });
  EXPECT_THAT(error.message(), testing::HasSubstr("row 2 of '"));
  EXPECT_THAT(error.message(), testing::HasSubstr("field 'label' is no number"));
  EXPECT_EQ(sample_of(*data::skip_damaged(reviews, {.max_skipped = 1}), 1), "good1");
}

}  // namespace
