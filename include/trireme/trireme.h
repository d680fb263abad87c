#pragma once

// Everything for C++. C programs take trireme/wire.h alone.
#include "trireme/collectives.h"
#include "trireme/command_line.h"
#include "trireme/data.h"
#include "trireme/dtype.h"
#include "trireme/error.h"
#include "trireme/metrics.h"
#include "trireme/model.h"
#include "trireme/plan.h"
#include "trireme/session.h"
