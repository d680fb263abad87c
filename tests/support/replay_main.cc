// Runs a fuzz target without libFuzzer: over the inputs of its corpus, then over inputs made of them, always the same
// ones. So the target is compiled and tried in every build; where it needs torch, which is not built for libFuzzer, this
// is its search, too.
//
//     x_fuzz CORPUS_FOLDER [SECONDS]
//
// Without SECONDS a few hundred made inputs, in milliseconds. An input that crashes, takes 5 s or asks for 64 MiB at once
// is written to a file, whose path is said.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <string>
#include <vector>

#include "tests/support/mutate_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr int kMadeInputs = 300;
constexpr std::size_t kMostMadeBytes = std::size_t{1} << 20;
constexpr std::size_t kMostBytesAtOnce = std::size_t{64} << 20;
constexpr unsigned kMostSeconds = 5;

std::string running;  ///< The input that is tried.
bool is_running = false;
char crash_path[64];

/// Only calls that a signal handler may make.
void keep_input(int signal) {
  const int file = open(crash_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const bool is_kept = file >= 0 && write(file, running.data(), running.size()) >= 0;
  const char* const what = signal == SIGALRM ? "took too long" : "failed";
  const char* const path = is_kept ? crash_path : "nowhere";
  for (const char* text : {"an input ", what, ", it is in ", path, "\n"}) {
    if (write(STDERR_FILENO, text, std::char_traits<char>::length(text)) < 0) break;
  }
  std::signal(signal, SIG_DFL);
  raise(signal);
}

void try_input(std::string input) {
  running = std::move(input);
  is_running = true;
  alarm(kMostSeconds);
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(running.data()), running.size());
  alarm(0);
  is_running = false;
}

std::vector<std::string> corpus_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry);
  std::sort(paths.begin(), paths.end());  // the made inputs depend on the order
  std::vector<std::string> inputs;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return inputs;
}

}  // namespace

// A length in an input must not decide what is asked for.
void* operator new(std::size_t bytes) {
  if (is_running && bytes > kMostBytesAtOnce) {
    std::fprintf(stderr, "%zu bytes were asked for at once\n", bytes);
    std::abort();
  }
  if (void* const memory = std::malloc(std::max<std::size_t>(bytes, 1))) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*bytes*/) noexcept { std::free(memory); }

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3 || !std::filesystem::is_directory(argv[1])) {
    std::fprintf(stderr, "usage: %s CORPUS_FOLDER [SECONDS]\n", argv[0]);
    return 2;
  }
  std::snprintf(crash_path, sizeof crash_path, "/tmp/trireme-fuzz-%d", static_cast<int>(getpid()));
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGBUS, SIGILL, SIGALRM}) {
    std::signal(signal, keep_input);
  }
  const std::vector<std::string> inputs = corpus_of(argv[1]);
  if (inputs.empty()) {
    std::fprintf(stderr, "no inputs in %s\n", argv[1]);
    return 1;
  }
  for (const std::string& input : inputs) try_input(input);
  const std::chrono::seconds time(argc == 3 ? std::strtol(argv[2], nullptr, 10) : 0);
  const auto end = std::chrono::steady_clock::now() + time;
  trireme::testing::InputMutator mutator(1);
  std::size_t made = 0;
  const auto goes_on = [&] {
    return argc == 3 ? std::chrono::steady_clock::now() < end : made < kMadeInputs;
  };
  for (; goes_on(); ++made) {
    try_input(mutator.mutate(inputs[made % inputs.size()], kMostMadeBytes));
  }
  std::printf("%zu inputs, and %zu made of them\n", inputs.size(), made);
  return 0;
}
