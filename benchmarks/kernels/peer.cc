#include "benchmarks/kernels/peer.h"

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>

#include "trireme/base/system_error.h"
#include "trireme/error.h"

namespace trireme::kernels::bench {
namespace {

/// The variables of this process, and that the allocator keeps its memory, in large pages where
/// there are any: without it stock torch pays page faults for every large result, which training
/// processes avoid.
std::vector<std::string> peer_environment() {
  std::vector<std::string> variables;
  const std::string tunables = "GLIBC_TUNABLES=";
  for (char** one = environ; *one != nullptr; ++one) {
    if (!std::string_view(*one).starts_with(tunables)) variables.emplace_back(*one);
  }
  variables.push_back(tunables +
                      "glibc.malloc.mmap_threshold=17179869184:"
                      "glibc.malloc.trim_threshold=17179869184:glibc.malloc.hugetlb=1");
  return variables;
}

std::vector<char*> as_words(std::vector<std::string>& texts) {
  std::vector<char*> words;
  for (std::string& text : texts) words.push_back(text.data());
  words.push_back(nullptr);
  return words;
}

}  // namespace

PeerProcess::PeerProcess(const Start& start) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw_system_error("make a pair of sockets", errno);
  }
  socket_ = Descriptor(ends[0]);
  const Descriptor other_end(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, other_end.number(), 0);
  posix_spawn_file_actions_adddup2(&actions, other_end.number(), 1);
  std::vector<std::string> words = {start.python, "-B", start.script, "--threads",
                                    std::to_string(start.num_threads)};
  std::vector<std::string> variables = peer_environment();
  const int code = posix_spawnp(&process_, start.python.c_str(), &actions, nullptr,
                                as_words(words).data(), as_words(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  if (code != 0) {
    throw Error(ErrorKind::kUnavailable,
                "cannot start " + start.python +
                    " for the peers: " + std::error_code(code, std::generic_category()).message());
  }
}

PeerProcess::~PeerProcess() {
  socket_.reset();  // it ends when nobody asks any more
  if (process_ > 0) waitpid(process_, nullptr, 0);
}

void PeerProcess::load(const std::string& peer, const std::string& name,
                       const std::filesystem::path& inputs, const std::filesystem::path& outputs) {
  const Json answer = ask({{"do", "load"},
                           {"peer", peer},
                           {"case", name},
                           {"inputs", inputs.string()},
                           {"outputs", outputs.string()}});
  version_ = answer.at("version").get<std::string>();
}

double PeerProcess::run() { return ask({{"do", "run"}}).at("ms").get<double>(); }

Json PeerProcess::ask(const Json& question) {
  const std::string line = compact_text(question) + "\n";
  if (send(socket_.number(), line.data(), line.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(line.size())) {
    throw Error(ErrorKind::kPeerLost, "the process of the peers does not listen any more");
  }
  std::array<char, 4096> piece{};
  std::size_t end = std::string::npos;
  while ((end = received_.find('\n')) == std::string::npos) {
    const ssize_t count = read(socket_.number(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw Error(ErrorKind::kPeerLost, "the process of the peers has ended");
    received_.append(piece.data(), static_cast<std::size_t>(count));
  }
  const Json answer = parse_json(received_.substr(0, end), "the peers' answer");
  received_.erase(0, end + 1);
  if (answer.contains("missing")) {
    throw Error(ErrorKind::kUnavailable, answer.at("missing").get<std::string>());
  }
  if (answer.contains("error")) {
    throw Error(ErrorKind::kIo, answer.at("error").get<std::string>());
  }
  return answer;
}

}  // namespace trireme::kernels::bench
