#include "mbsim.h"

const char *mbsim_version(void)
{
	return MBSIM_VERSION;
}
