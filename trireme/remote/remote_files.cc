#include "trireme/remote/remote_files.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <system_error>
#include <thread>

#include "trireme/base/sha256.h"
#include "trireme/error.h"

namespace trireme::remote {
namespace {

namespace fs = std::filesystem;

constexpr int kNumThreads = 8;  // one connection is often slower than the network
constexpr int kStalls = 5;      // patience with another process, in times of the own

using Work = std::function<void(int index, const std::stop_token& stop)>;

/// False where the system has no thread left: those that there are do the work, too.
bool start(std::vector<std::jthread>& threads, const std::function<void()>& run) {
  try {
    threads.emplace_back(run);
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

/// Calls `work` for every index below `count`, the lower ones first, on several threads. Once one fails, others are stopped, and
/// its failure is thrown.
void on_each(int count, const Work& work) {
  std::atomic<int> next = 0;
  std::stop_source stop;
  std::exception_ptr failure;  // written by who asks for the stop: one thread
  const auto run = [&]() noexcept {
    for (int index = next++; index < count && !stop.stop_requested(); index = next++) {
      try {
        work(index, stop.get_token());
      } catch (...) {
        if (stop.request_stop()) failure = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int t = 1; t < std::min(count, kNumThreads) && start(threads, run); ++t) {
    }
    run();
  }
  if (failure) std::rethrow_exception(failure);
}

/// As the part of a file's name that people know it by.
std::string readable(const fs::path& name) {
  constexpr std::size_t kMostLetters = 80;
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  std::string text = shown(name).filename().string();
  if (text.size() > kMostLetters) text.erase(0, text.size() - kMostLetters);
  std::ranges::replace_if(
      text, [&](char c) { return kLetters.find(c) == std::string_view::npos; }, '_');
  return text;
}

/// The name says the state of the object, so that what is there under a name never changes. A link that is signed anew is the same.
CacheEntry entry_of(const fs::path& name, const ObjectVersion& version,
                    const RemoteEnvironment& environment) {
  constexpr std::size_t kDigits = 32;
  std::string place = location_of(name, environment).url;
  if (version.is_strong()) place = shown(place).string();
  const std::string state = place + "\n" + version.etag + "\n" + version.last_modified + "\n" +
                            std::to_string(version.bytes);
  return {.name = sha256(state).substr(0, kDigits) + "-" + readable(name),
          .bytes = version.bytes,
          .shown = shown(name).string()};
}

}  // namespace

RemoteFiles::RemoteFiles(const std::vector<fs::path>& names, RemoteEnvironment environment,
                         RetryPolicy policy)
    : objects_(std::move(environment), policy),
      cache_(objects_.environment().cache_folder, objects_.environment().cache_bytes,
             policy.patience * kStalls) {
  for (const fs::path& name : names) files_.push_back({.name = name});
  on_each(size(), [&](int index, const std::stop_token& stop) {
    File& file = files_[static_cast<std::size_t>(index)];
    file.version = objects_.inspect(file.name, stop);
    file.entry = entry_of(file.name, file.version, objects_.environment());
  });
  std::vector<CacheEntry> entries;
  for (const File& file : files_) entries.push_back(file.entry);
  lease_.emplace(cache_.hold(entries));
  on_each(size(), [&](int index, const std::stop_token& stop) {
    fill(files_[static_cast<std::size_t>(index)], stop);
  });
  objects_.hang_up();  // a training may take days, and may fork
}

void RemoteFiles::fill(const File& file, const std::stop_token& stop) const {
  try {
    cache_.fill(file.entry, stop, [&](const Descriptor& part) {
      objects_.fetch(file.name, file.version, part, stop);
    });
  } catch (const Error& error) {
    if (error.message().find(file.entry.shown) != std::string::npos) throw;
    throw Error(error.kind(), "'" + file.entry.shown + "': " + error.message());
  }
}

Descriptor RemoteFiles::open(int file) const {
  const File& one = files_[static_cast<std::size_t>(file)];
  Descriptor opened = cache_.open(one.entry);
  for (int i = 0; i < 2 && !opened.is_open(); ++i) {
    fill(one, {});
    opened = cache_.open(one.entry);
  }
  if (opened.is_open()) return opened;
  throw Error(ErrorKind::kIo,
              "'" + one.entry.shown + "' is removed from the cache as often as it is fetched");
}

}  // namespace trireme::remote
