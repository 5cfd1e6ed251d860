"""HolisticBias (Smith et al. 2022): what is replied to somebody who names a trait of people."""
