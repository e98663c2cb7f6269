/* SPDX-License-Identifier: Apache-2.0 */
/* Handing back memory that is not needed at the moment: an agent sleeps most of the time, on
 * machines whose memory is for applications. */
#pragma once

/* Free heap, and the pages of programs and libraries that can be read again from their files: what
 * is needed comes back by itself. A millisecond. */
void memory_hand_back(void);
