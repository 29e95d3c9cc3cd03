"""The privacy-loss-distribution accountant, `pld.accountant`; the other modules are its private
rooms.
"""
