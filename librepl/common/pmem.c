#include "pmem.h"
