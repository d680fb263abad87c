#pragma once

#include "trireme/base/descriptor.h"

namespace trireme {

/// Children that are forked from now on have `/dev/null` in place of this file or socket, so that
/// they cannot keep a connection or a lock after this process has ended. O_CLOEXEC is for children
/// that call exec.
///
/// Not of epoll, eventfd and the like, which have no inode of their own.
///
/// Limits   children made by the system call alone, past the C library, have it; so they have numbers
///          from 65,536 on.
/// Threads  safe from any thread.
void keep_from_children(const Descriptor& descriptor);

}  // namespace trireme
