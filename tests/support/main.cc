// The main of all test programs. Skips are said at the end, since ctest shows one line for many tests;
// TRIREME_TEST_NAME picks among the tests of an entry of ctest (./dev test NAME).

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

std::string name_of(const testing::TestInfo& test) {
  return std::string(test.test_suite_name()) + "." + test.name();
}

class SaySkips : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo& test) override {  // NOLINT(readability-identifier-naming)
    if (!test.result()->Skipped()) return;
    std::string reason;
    for (int i = 0; i < test.result()->total_part_count(); ++i) {
      reason = test.result()->GetTestPartResult(i).message();
    }
    std::printf("[  SKIPPED ] %s: %s\n", name_of(test).c_str(), reason.c_str());
  }
};

/// Of the tests that a filter `Suite.*` or `Suite.*/parameter*` names, those with `part` in their
/// names; the filter itself where there are none.
std::string narrowed(const std::string& filter, const std::string& part) {
  std::string result;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    const std::string all_of_suite = std::string(suite.name()) + ".*";
    if (!filter.starts_with(all_of_suite)) continue;
    std::string parameter = filter.substr(all_of_suite.size());
    if (!parameter.empty()) parameter.pop_back();
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const std::string name = name_of(*suite.GetTestInfo(t));
      const bool is_named = name.find(parameter) != std::string::npos;
      if (is_named && name.find(part) != std::string::npos) result += ":" + name;
    }
  }
  return result.empty() ? filter : result.substr(1);
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new SaySkips);
  if (const char* part = std::getenv("TRIREME_TEST_NAME")) {
    testing::GTEST_FLAG(filter) = narrowed(testing::GTEST_FLAG(filter), part);
  }
  return RUN_ALL_TESTS();
}
