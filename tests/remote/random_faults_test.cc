// A store that goes wrong at random, by a seed: what is fetched is whole all the same.

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/base/test_folder.h"
#include "tests/remote/store_server.h"
#include "trireme/remote/remote_files.h"

namespace trireme::remote {
namespace {

class RandomFaults : public test::TestFolder, public testing::WithParamInterface<unsigned> {
 protected:
  void SetUp() override {
    if (!server.is_there()) GTEST_SKIP() << "no Python to run the store";
  }

  std::string bytes(std::size_t count) {
    std::string content(count, '\0');
    for (char& byte : content) byte = static_cast<char>(draw());
    return content;
  }

  std::size_t below(std::size_t count) { return draw() % count; }

  /// The next requests of an object go wrong, each in one way; a line of its own for each.
  void break_object(const std::string& name, std::size_t size) {
    for (std::size_t i = below(4); i > 0; --i) {
      const std::string number = std::to_string(num_faults++);
      switch (below(5)) {
        case 0:
          server.fail("/b/" + name + " status 1 503 " + number);
          break;
        case 1:
          server.fail("/b/" + name + " head-status 1 500 " + number);
          break;
        case 2:
          server.fail("/b/" + name + " slow 1 " + number);
          break;
        case 3:
          server.fail("/b/" + name + " corrupt 1 " + number);
          break;
        default:
          server.fail("/b/" + name + " cut 1 " + std::to_string(below(size)) + " " + number);
      }
    }
  }

  const test::StoreServer server{folder};
  std::mt19937 draw{GetParam()};
  int num_faults = 0;
};

/// Twelve objects of some hundred kilobytes; a request of each may be refused, cut anywhere, slow, or give a wrong byte, up to three
/// times. Each object comes whole, in its place, and what is asked for beyond it is what went wrong.
TEST_P(RandomFaults, LoseNothingAndDoubleNothing) {
  std::vector<std::filesystem::path> names;
  std::vector<std::string> contents;
  for (int i = 0; i < 12; ++i) {
    const std::string name = std::to_string(i) + ".bin";
    contents.push_back(bytes(1 + below(400'000)));
    server.put("b/" + name, contents.back());
    break_object(name, contents.back().size());
    names.emplace_back("s3://b/" + name);
  }
  const RemoteFiles files(names, server.environment(), test::quick_policy());
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::string found(contents[i].size() + 1, '\0');
    const auto file = files.open(static_cast<int>(i));
    const ssize_t count = ::pread(file.number(), found.data(), found.size(), 0);
    found.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
    EXPECT_TRUE(found == contents[i])
        << names[i] << ": " << count << " bytes of " << contents[i].size();
  }
  EXPECT_LE(server.count("GET"), 12 + num_faults);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomFaults, testing::Range(1U, 5U));

}  // namespace
}  // namespace trireme::remote
