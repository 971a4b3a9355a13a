"""Counts the primes below a number in a file. Nearly all its time is computing. Usage: `primes.py FILE`."""

import sys

most = int(open(sys.argv[1]).readline())
sieve = bytearray([1]) * most
for number in range(2, int(most**0.5) + 1):
    if sieve[number]:
        for multiple in range(number * number, most, number):
            sieve[multiple] = 0
print(sum(sieve) - 2)
