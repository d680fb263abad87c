#include "trireme/wire/transport/thread.h"

#include <pthread.h>

#include <utility>

namespace trireme::transport {
namespace {

bool& current_flag() {
  thread_local bool is_library_thread = false;  // a fact of the thread, set once at its start
  return is_library_thread;
}

}  // namespace

LibraryThread::LibraryThread(const std::string& name, std::function<void()> body)
    : thread_([name = name.substr(0, 15), body = std::move(body)] {
        pthread_setname_np(pthread_self(), name.c_str());
        current_flag() = true;
        body();
      }) {}

void LibraryThread::join() {
  if (thread_.joinable()) thread_.join();
}

bool LibraryThread::is_current() { return current_flag(); }

}  // namespace trireme::transport
