#pragma once

#include "trireme/dtype.h"
