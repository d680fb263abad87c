#include "packs/text/data/labelled_pairs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/packs/text/data/text_folder.h"

namespace trireme::text {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class LabelledPairs : public TextFolder {
 protected:
  /// What is said about a table with that content.
  std::string complaint(const std::string& content) const {
    const auto path = write("pairs.tsv", content);
    const Error error = error_of([&] { read_labelled_pairs(path); });
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument) << error.message();
    EXPECT_THAT(error.message(), HasSubstr(path.string()));
    return error.message();
  }
};

constexpr const char* kHeader = "premise\thypothesis\tlabel\n";

TEST_F(LabelledPairs, ColumnsAreFoundByName) {
  const auto path = write("pairs.tsv",
                          "index\tlabel\thypothesis\tpremise\tmore\n"
                          "0\tyes\tit \"sat\"\tthe cat\t\n"
                          "1\tno\t\t na\xC3\xAFve \tx\n");
  const auto pairs = read_labelled_pairs(path);
  ASSERT_EQ(pairs.size(), 2U);
  EXPECT_EQ(pairs[0].first, "the cat");
  EXPECT_EQ(pairs[0].second, "it \"sat\"") << "quotes are text";
  EXPECT_EQ(pairs[0].label, "yes");
  EXPECT_EQ(pairs[0].line, 2);
  EXPECT_EQ(pairs[1].first, " na\xC3\xAFve ");
  EXPECT_EQ(pairs[1].second, "");
  EXPECT_EQ(pairs[1].line, 3);
}

TEST_F(LabelledPairs, ColumnsMayHaveOtherNames) {
  const auto path = write("pairs.tsv", "question\tsentence\tgold\nwho?\tme\ty\n");
  const auto pairs = read_labelled_pairs(path, {"question", "sentence", "gold"});
  ASSERT_EQ(pairs.size(), 1U);
  EXPECT_EQ(pairs[0].first + pairs[0].second + pairs[0].label, "who?mey");
}

TEST_F(LabelledPairs, EndsOfLinesAndAMarkAtTheBeginningAreNoText) {
  const auto path =
      write("pairs.tsv", "\xEF\xBB\xBFpremise\thypothesis\tlabel\r\na\tb\tc\r\nd\te\tf");
  const auto pairs = read_labelled_pairs(path);
  ASSERT_EQ(pairs.size(), 2U);
  EXPECT_EQ(pairs[0].label, "c");
  EXPECT_EQ(pairs[1].label, "f");
}

TEST_F(LabelledPairs, WhatIsNoTableOfPairsIsNamedWithItsLine) {
  const std::string header = kHeader;
  EXPECT_THAT(complaint(""), HasSubstr("is empty"));
  EXPECT_THAT(complaint(header), AllOf(HasSubstr("line 1: "), HasSubstr("there are none")));
  EXPECT_THAT(complaint("premise\tlabel\na\tb\n"),
              AllOf(HasSubstr("line 1: expected one column 'hypothesis'"),
                    HasSubstr("which are 'premise', 'label'")));
  EXPECT_THAT(complaint("label\tlabel\thypothesis\tpremise\na\tb\tc\td\n"),
              HasSubstr("expected one column 'label'"));
  EXPECT_THAT(complaint(header + "a\tb\tc\na\tb\n"),
              HasSubstr("line 3: expected 3 columns, as the header has, got 2"));
  EXPECT_THAT(complaint(header + "a\tb\tc\td\n"), HasSubstr("line 2: expected 3 columns"));
  EXPECT_THAT(complaint(header + "a\tb\tc\n\n"), HasSubstr("line 3: expected 3 columns"));
  EXPECT_THAT(complaint(header + "a\tb\t\n"), HasSubstr("line 2: expected a label"));
  EXPECT_THAT(complaint(header + "a\tb\tc\n\xE9t\xE9\tb\tc\n"),
              HasSubstr("line 3: expected UTF-8"));
}

TEST_F(LabelledPairs, AFileThatIsMissingIsNamed) {
  const Error error = error_of([&] { read_labelled_pairs(folder / "nothing.tsv"); });
  EXPECT_EQ(error.kind(), ErrorKind::kIo);
  EXPECT_THAT(error.message(), HasSubstr("nothing.tsv"));
}

TEST_F(LabelledPairs, OfMultiNli) {
  const auto data = public_data("nli-mnli");
  if (data.empty()) GTEST_SKIP() << "no ../shared/data/nli-mnli";
  std::map<std::string, int> counts;
  for (const LabelledPair& pair : read_labelled_pairs(data / "dev.tsv")) ++counts[pair.label];
  EXPECT_EQ(counts, (std::map<std::string, int>{
                        {"entailment", 343}, {"neutral", 301}, {"contradiction", 326}}));
}

}  // namespace
}  // namespace trireme::text
